import CLinux
import Glibc

/// How one process of a worker at rest uses listening sockets, for `PreforkMasters`.
public struct PreforkFacts: Hashable, Sendable {
  public var process: ProcessIdentity
  public var parent: Int32
  /// The inode numbers of the listening sockets that it has open.
  public var listeners: Set<UInt64>
  /// The listening sockets at which one of its threads waits for a connection; nil if that isn't
  /// known.
  public var awaited: Set<UInt64>?

  /// Returns the masters among the processes. A master has opened a socket at which one of its
  /// children waits, and waits at no listening socket itself, so that no client waits for it.
  static func masters(among all: [PreforkFacts]) -> Set<ProcessIdentity> {
    let children = Dictionary(grouping: all, by: \.parent)
    let masters = all.filter { process in
      guard process.awaited?.isEmpty == true else { return false }
      return children[process.process.pid, default: []].contains { child in
        child.awaited.map { !$0.isDisjoint(with: process.listeners) } ?? false
      }
    }
    return Set(masters.map(\.process))
  }

  /// Reads the facts of processes that are at rest with their memory in place. It needs the right
  /// to trace them. A process that has ended, or may not be read, has no sockets here, and is no
  /// master and no child of one. Don't call it on the event loop: reading memory may wait.
  ///
  /// - Throws: an error if a resource is short.
  static func read(_ tree: ProcessTree) throws(SystemCallError) -> [PreforkFacts] {
    var isListening: [UInt64: Bool] = [:]
    var all: [PreforkFacts] = []
    for stat in tree.processes {
      let open = try sockets(of: stat.pid)
      let pidfd =
        open.isEmpty
        ? nil
        : try readIfPossible { () throws(SystemCallError) in try Descriptor.pidfd(of: stat.pid) }
      for socket in open where isListening[socket.inode] == nil {
        isListening[socket.inode] = try readIfPossible { () throws(SystemCallError) in
          try pidfd.map { pidfd throws(SystemCallError) in
            try SocketFacts.read(socket.duplicate(from: pidfd)).isListening
          } ?? false
        }
      }
      let listeners = open.filter { isListening[$0.inode] == true }
      all.append(
        PreforkFacts(
          process: stat.identity, parent: stat.parent, listeners: Set(listeners.map(\.inode)),
          awaited: try awaited(of: stat.identity, among: listeners)))
    }
    return all
  }

  private static func sockets(of pid: Int32) throws(SystemCallError) -> [OpenDescriptor] {
    let open = try readIfPossible { () throws(SystemCallError) in try OpenDescriptor.list(of: pid) }
    return (open ?? []).filter { $0.kind == .socket }
  }

  private static func awaited(
    of process: ProcessIdentity, among listeners: [OpenDescriptor]
  ) throws(SystemCallError) -> Set<UInt64>? {
    if listeners.isEmpty { return [] }
    let pid = process.pid
    let all = try readIfPossible { () throws(SystemCallError) in try threads(of: pid) }
    guard let all, !all.isEmpty else { return nil }
    var shown: [Int32: String] = [:]
    for thread in all {
      shown[thread] = try readIfPossible { () throws(SystemCallError) in
        try readText("/proc/\(pid)/task/\(thread)/syscall")
      }
    }
    guard shown.count == all.count,
      let calls = calls(shownAs: shown, after: CallsBeforeStop.recorded(of: process))
    else { return nil }
    var numbers: Set<Int32> = []
    for call in calls {
      guard let descriptors = try AwaitedDescriptors.of(call, in: pid) else { return nil }
      numbers.formUnion(descriptors)
    }
    return Set(listeners.filter { numbers.contains($0.number) }.map(\.inode))
  }

  /// Returns the calls of threads at rest; nil if one isn't known.
  ///
  /// - Parameters:
  ///   - shown: the line of /proc for each thread. On arm64 it doesn't show the call.
  ///   - recorded: the calls from before the threads came to rest.
  static func calls(
    shownAs shown: [Int32: String], after recorded: CallsBeforeStop.Calls
  ) -> [WaitingCall]? {
    let calls = shown.compactMap { thread, text in
      CallsBeforeStop.call(after: recorded[thread], shownAs: text)
    }
    return calls.count == shown.count ? calls : nil
  }
}

/// The descriptors at which a call waits for input or a connection.
enum AwaitedDescriptors {
  /// Returns the descriptors; nil if they can't be known.
  ///
  /// - Throws: an error if a resource is short.
  static func of(_ call: WaitingCall, in pid: Int32) throws(SystemCallError) -> Set<Int32>? {
    let arguments = call.arguments
    let first = Int32(truncatingIfNeeded: arguments[0])
    switch clinux_awaited_of(call.number) {
    case CLINUX_AWAITED_NONE: return []
    case CLINUX_AWAITED_ONE: return [first]
    case CLINUX_AWAITED_EPOLL:
      return try readIfPossible { () throws(SystemCallError) in
        try readText("/proc/\(pid)/fdinfo/\(first)")
      }.map(epoll)
    case CLINUX_AWAITED_POLL:
      let count = Int(truncatingIfNeeded: arguments[1])
      guard (0...maxDescriptors).contains(count) else { return nil }
      return try memory(of: pid, at: arguments[0], length: count * 8).map(poll)
    case CLINUX_AWAITED_SELECT:
      guard (0...Int32(maxDescriptors)).contains(first) else { return nil }
      if arguments[1] == 0 { return [] }
      return try memory(of: pid, at: arguments[1], length: (Int(first) + 7) / 8).map {
        select($0, below: first)
      }
    default: return nil
    }
  }

  private static let maxDescriptors = 65_536

  /// Parses the lines `tfd: NUMBER events: …` of proc_pid_fdinfo(5).
  static func epoll(_ text: String) -> Set<Int32> {
    Set(
      text.split(separator: "\n").compactMap { line in
        let fields = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
        return fields.count > 1 && fields[0] == "tfd:" ? Int32(fields[1]) : nil
      })
  }

  /// Returns the descriptors in an array of `struct pollfd` that are polled for input.
  static func poll(_ bytes: [UInt8]) -> Set<Int32> {
    bytes.withUnsafeBytes { raw in
      Set(
        stride(from: 0, to: raw.count - 7, by: 8).compactMap { offset in
          let events = raw.loadUnaligned(fromByteOffset: offset + 4, as: Int16.self)
          return events & Int16(POLLIN) == 0
            ? nil : raw.loadUnaligned(fromByteOffset: offset, as: Int32.self)
        })
    }
  }

  /// Returns the descriptors in an `fd_set`.
  static func select(_ bytes: [UInt8], below end: Int32) -> Set<Int32> {
    Set((0..<end).filter { bytes[Int($0) / 8] >> ($0 % 8) & 1 == 1 })
  }

  private static func memory(
    of pid: Int32, at address: UInt64, length: Int
  ) throws(SystemCallError) -> [UInt8]? {
    let bytes = try readIfPossible { () throws(SystemCallError) in
      try Descriptor.open("/proc/\(pid)/mem")
        .readBytes(upTo: length, at: Int64(truncatingIfNeeded: address))
    }
    return bytes?.count == length ? bytes : nil
  }
}
