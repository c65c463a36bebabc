import CLinux
import Glibc
import Linux

/// The daemon's end of a small process that keeps descriptors of hibernated processes' memory.
///
/// It is needed if Yama lets a daemon open the memory of its own children only. A daemon that
/// replaces a dead one couldn't write the memory of a hibernated process back, so it gets the
/// descriptors that the dead daemon had opened. The keeper hands them out only while there is no
/// daemon, only at a socket in the state directory, and only to the same user, which can read and
/// replace the images anyway.
public final class DescriptorKeeper: Sendable {
  private let socket: Descriptor
  /// The keeper's process.
  public let process: SpawnedProcess

  /// Starts the keeper. Call it only from a thread that lives as long as the daemon.
  ///
  /// - Parameter command: a program and arguments that run `DescriptorKeeping` on descriptor 0.
  public init(command: [String]) throws {
    let theirs: Descriptor
    (socket, theirs) = try Descriptor.socketPair(.packets)
    // A stopped keeper must not block the daemon.
    try socket.setFlags(O_NONBLOCK)
    let null = try Descriptor.open("/dev/null", O_RDWR)
    process = try spawn(
      SpawnRequest(
        path: command.first ?? "", arguments: command, environment: [:], directory: "/",
        input: theirs.raw, output: null.raw, error: 2))
  }

  /// Returns true if the keeper has ended (it may have been killed). It reaps the process once.
  public func hasEnded() -> Bool { reapIfEnded(process.pid) }

  /// Sends a descriptor. When this returns, the keeper gets the descriptor even if the daemon dies.
  func keep(_ process: ProcessIdentity, _ memory: Descriptor) throws(SystemCallError) {
    try KeeperMessage.keep(process).send(to: socket, passing: memory)
  }

  /// Makes the keeper close a descriptor, because the process runs again. If this fails, the keeper
  /// has a descriptor that no daemon asks for.
  func drop(_ process: ProcessIdentity) {
    do throws(SystemCallError) { try KeeperMessage.drop(process).send(to: socket) } catch {}
  }
}

/// One packet between the daemon and the keeper, or the keeper and the next daemon.
enum KeeperMessage: Equatable {
  /// The message carries a descriptor of the process's memory.
  case keep(ProcessIdentity)
  case drop(ProcessIdentity)
  /// All descriptors have been handed over.
  case end
  /// Another keeper has the descriptors now, or they aren't needed any more.
  case confirmed

  var text: String {
    switch self {
    case .keep(let process): "keep \(process.pid) \(process.startTime)"
    case .drop(let process): "drop \(process.pid) \(process.startTime)"
    case .end: "end"
    case .confirmed: "taken"
    }
  }

  /// Parses the form of `text`. It is `nil` for any other text.
  init?(_ text: String) {
    let fields = text.split(separator: " ")
    switch (fields.first, fields.count) {
    case ("end", 1): self = .end
    case ("taken", 1): self = .confirmed
    case (let verb?, 3):
      guard let pid = Int32(fields[1]), let time = UInt64(fields[2]) else { return nil }
      let process = ProcessIdentity(pid: pid, startTime: time)
      switch verb {
      case "keep": self = .keep(process)
      case "drop": self = .drop(process)
      default: return nil
      }
    default: return nil
    }
  }

  func send(to socket: Descriptor, passing passed: Descriptor? = nil) throws(SystemCallError) {
    let bytes = Array(text.utf8)
    if let passed {
      try shim("sendmsg", on: "the keeper of descriptors") {
        clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), passed.raw)
      }
    } else {
      _ = try shim("send", on: "the keeper of descriptors") { socket.send(bytes, waits: true) }
    }
  }

  enum Received {
    case message(KeeperMessage, Descriptor?)
    case nothing, closed
  }

  /// Receives one message without waiting. A packet that isn't a message is dropped.
  static func receive(from socket: Descriptor) -> Received {
    var bytes: [UInt8] = []
    do throws(SystemCallError) {
      guard let reception = try Reception.receive(from: socket, 128, &bytes) else {
        return .nothing
      }
      if reception.count == 0 { return .closed }
      guard let message = KeeperMessage(String(decoding: bytes, as: UTF8.self)) else {
        return .nothing
      }
      return .message(message, reception.passed.first)
    } catch { return .closed }
  }
}

/// The work of the keeper's process.
public struct DescriptorKeeping {
  private var kept: [ProcessIdentity: Descriptor] = [:]
  private let input: Descriptor
  private let path: String
  private var listener: Descriptor
  /// The inode of the socket's file.
  private var inode: UInt64 = 0

  /// Runs until the descriptors are handed over, or aren't needed any more.
  ///
  /// - Parameters:
  ///   - input: the socket with the daemon's packets. It ends when the daemon ends.
  ///   - path: the socket to which the next daemon connects. It is served when no daemon runs.
  public static func run(input: Descriptor, path: String) throws(SystemCallError) {
    clinux_raise_descriptor_limit()
    signal(SIGPIPE, SIG_IGN)
    var keeping = DescriptorKeeping(
      input: input, path: path, listener: try UnixSocket.bound(to: path, .packets))
    try keeping.listen()
    try keeping.followDaemon()
    while try !keeping.serveNext() {}
    // By now the file may be the next keeper's.
    if clinux_inode_at(path) == keeping.inode { discardFile(path) }
  }

  private init(input: Descriptor, path: String, listener: Descriptor) {
    (self.input, self.path, self.listener) = (input, path, listener)
  }

  private mutating func listen() throws(SystemCallError) {
    try listener.listen(backlog: 4, path: path)
    inode = clinux_inode_at(path)
  }

  private mutating func followDaemon() throws(SystemCallError) {
    while true {
      try pollDescriptor(input.raw, for: POLLIN, until: Deadline(in: .seconds(3600)))
      switch KeeperMessage.receive(from: input) {
      case .message(.keep(let process), let descriptor?): kept[process] = descriptor
      case .message(.drop(let process), _): kept[process] = nil
      case .message, .nothing: break
      case .closed: return
      }
    }
  }

  /// Serves one daemon that connects. Returns true when the keeper's work is done.
  private mutating func serveNext() throws(SystemCallError) -> Bool {
    kept = kept.filter { !$0.key.hasEnded }
    if kept.isEmpty { return true }
    guard try pollDescriptor(listener.raw, for: POLLIN, until: Deadline(in: .seconds(10))) else {
      return false
    }
    let raw = clinux_accept(listener.raw)
    guard raw >= 0 else { return false }
    let peer = Descriptor(owning: raw)
    // The descriptors may be more than the socket's buffer holds at once, so sending waits.
    do throws(SystemCallError) { try peer.setFlags(0) } catch { return false }
    guard peerUser(of: peer) == geteuid() else { return false }
    do throws(SystemCallError) {
      for (process, memory) in kept {
        try KeeperMessage.keep(process).send(to: peer, passing: memory)
      }
      try KeeperMessage.end.send(to: peer)
    } catch { return false }
    // The next daemon confirms, or closes the connection without the descriptors.
    while true {
      try pollDescriptor(peer.raw, for: POLLIN, until: Deadline(in: .seconds(3600)))
      switch KeeperMessage.receive(from: peer) {
      case .message(.confirmed, _): return true
      case .message, .nothing: break
      case .closed:
        listener = try UnixSocket.bound(to: path, .packets)
        try listen()
        return false
      }
    }
  }
}

/// The descriptors that an earlier daemon's keeper has handed over.
public final class HandedOverMemories: Sendable {
  /// The descriptors of /proc/PID/mem, by process.
  public let memories: [ProcessIdentity: Descriptor]
  private let connection: Descriptor

  private init(memories: [ProcessIdentity: Descriptor], connection: Descriptor) {
    (self.memories, self.connection) = (memories, connection)
  }

  /// Gets the descriptors from the keeper at `path`. It waits at most for `time`, so it isn't for
  /// the event loop. Returns `nil` if no keeper exists, or it doesn't answer in time.
  public static func collect(from path: String, within time: Duration) -> HandedOverMemories? {
    guard fileExists(path) else { return nil }
    let deadline = Deadline(in: time)
    var memories: [ProcessIdentity: Descriptor] = [:]
    do throws(SystemCallError) {
      let connection = try UnixSocket.connected(to: path, .packets)
      guard peerUser(of: connection) == geteuid() else { return nil }
      while true {
        switch KeeperMessage.receive(from: connection) {
        case .message(.keep(let process), let memory?):
          if isMemory(memory, of: process) { memories[process] = memory }
        case .message(.end, _):
          return HandedOverMemories(memories: memories, connection: connection)
        case .message: break
        case .nothing:
          guard try pollDescriptor(connection.raw, for: POLLIN, until: deadline) else { return nil }
        case .closed: return nil
        }
      }
    } catch { return nil }
  }

  /// True if the descriptor is the memory of the process that has the pid now, not of an earlier
  /// one.
  private static func isMemory(_ memory: Descriptor, of process: ProcessIdentity) -> Bool {
    readLink("/proc/self/fd/\(memory.raw)") == "/proc/\(process.pid)/mem" && !process.hasEnded
  }

  /// Ends the earlier keeper, which isn't needed any more.
  public func confirm() {
    // If this fails, the keeper stays until its processes have ended.
    do throws(SystemCallError) { try KeeperMessage.confirmed.send(to: connection) } catch {}
  }
}

private func peerUser(of socket: Descriptor) -> uid_t? {
  var (pid, user, group): (pid_t, uid_t, gid_t) = (0, 0, 0)
  return clinux_peer_credentials(socket.raw, &pid, &user, &group) == 0 ? user : nil
}
