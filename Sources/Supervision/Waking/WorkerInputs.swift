import Glibc
import Linux

/// Identifies an input independently of the process that has it open.
struct InputKey: Hashable, Sendable {
  private enum Namespace { case socket, pipe, device, descriptor }

  private var namespace: Namespace
  private var inode: UInt64
  /// Set if the inode isn't unique: inotify descriptors share one, and so do all connections that
  /// were made by opening one device. A descriptor that a child has inherited counts as another
  /// input then, which costs one entry in the set.
  private var pid: Int32 = 0
  private var number: Int32 = 0

  init(_ open: OpenDescriptor, of pid: Int32) {
    inode = open.inode
    switch open.kind {
    case .socket: namespace = .socket
    case .pipe, .fifo: namespace = .pipe
    case .device where open.kind.isTerminal: namespace = .device
    case .device, .inotify, .fanotify, .ring:
      namespace = .descriptor
      self.pid = pid
      number = open.number
    }
  }
}

/// A descriptor at which input can arrive from outside a worker. Release it soon: the duplicate
/// keeps a connection open that the worker closes.
struct WorkerInput {
  let pid: Int32
  let open: OpenDescriptor
  let duplicate: Descriptor
  /// The socket's state; nil if it isn't a socket.
  let facts: SocketFacts?

  var key: InputKey { InputKey(open, of: pid) }
}

/// Finds the inputs of a worker's processes.
///
/// These aren't inputs: files; ends that are only written to; the worker's own timers, signals and
/// events; pipes and socket pairs whose other end is in the worker, too; netlink; a terminal whose
/// input is for another job; and the sockets to the daemon.
struct WorkerInputs {
  /// Each input once, with one of the descriptors that lead to it.
  private(set) var candidates: [(pid: Int32, open: OpenDescriptor)] = []
  /// The errors of processes whose descriptors may not be listed.
  private(set) var refusals: [SystemCallError] = []
  private let pids: Set<Int32>
  private let daemonSockets: Set<String>

  /// - Parameters:
  ///   - daemonSockets: the paths of the daemon's own sockets.
  ///   - includesRings: whether rings of io_uring are inputs. The kernel completes requests of a
  ///     frozen program: it accepts the connection or reads the data, which is in no socket then.
  init(of tree: ProcessTree, daemonSockets: Set<String>, includesRings: Bool = true) {
    self.daemonSockets = daemonSockets
    pids = Set(tree.pids)
    var all: [(pid: Int32, open: OpenDescriptor)] = []
    for pid in tree.pids {
      do throws(SystemCallError) {
        all += try OpenDescriptor.list(of: pid).map { (pid, $0) }
      } catch {
        if !Self.meansEnded(error, pid) { refusals.append(error) }
      }
    }
    // A worker that has both ends of a pipe only sends to itself.
    let written = Set(all.filter { $0.open.kind == .pipe && $0.open.isWritable }.map(\.open.inode))
    let jobs = Dictionary(tree.processes.map { ($0.pid, $0) }) { first, _ in first }
    let groups = Set(tree.processes.map(\.processGroup))
    var seen: Set<InputKey> = []
    // Sockets with these numbers come last: the same socket may have another number, too.
    let outputs = all.filter { Self.isForOutput($0.open) && $0.open.kind == .socket }
    candidates = (all.filter { !Self.isForOutput($0.open) } + outputs).filter { entry in
      let open = entry.open
      guard open.isReadable else { return false }
      if open.kind == .pipe, written.contains(open.inode) { return false }
      if open.kind == .ring, !includesRings { return false }
      // A controlling terminal gives its input to the foreground job only.
      if case .device(let device) = open.kind, let process = jobs[entry.pid],
        process.terminal != 0, [process.terminal, Self.anyTerminal].contains(device),
        !groups.contains(process.terminalGroup)
      {
        return false
      }
      return seen.insert(InputKey(open, of: entry.pid)).inserted
    }
  }

  /// The number of /dev/tty, which is the controlling terminal of the process that opens it.
  private static let anyTerminal: Int32 = 5 << 8

  /// Descriptors 1 and 2 are for output, whatever they are. Only a program that has closed them
  /// can listen there.
  private static func isForOutput(_ open: OpenDescriptor) -> Bool {
    open.number == 1 || open.number == 2
  }

  /// Calls `body` with each input that `isWanted`, and closes its duplicate.
  ///
  /// - Parameter unreadOnly: skips inputs with nothing to read. Inspecting those takes ten times
  ///   longer.
  /// - Returns: the errors of inputs that couldn't be inspected.
  func forEach<Failure: Error>(
    unreadOnly: Bool = false, where isWanted: (InputKey) -> Bool = { _ in true },
    _ body: (WorkerInput) throws(Failure) -> Void
  ) throws(Failure) -> [SystemCallError] {
    var refused = refusals
    var pidfd: (pid: Int32, descriptor: Descriptor)?
    for (pid, open) in candidates where isWanted(InputKey(open, of: pid)) {
      let input: WorkerInput?
      do throws(SystemCallError) {
        if pidfd?.pid != pid { pidfd = (pid, try Descriptor.pidfd(of: pid)) }
        guard let pidfd else { continue }
        input = try Self.duplicate(
          open, of: pid, from: pidfd.descriptor, unreadOnly: unreadOnly)
      } catch {
        // EBADF means that it was closed since. A process that has ended has no inputs.
        if error.code != EBADF, !Self.meansEnded(error, pid) { refused.append(error) }
        continue
      }
      if let input, isOutward(input) { try body(input) }
    }
    return refused
  }

  /// Whether the error means that the process has ended. Until it is reaped, an ended process still
  /// has a directory in /proc, which belongs to root. To any other user it looks like a process
  /// that may not be inspected.
  private static func meansEnded(_ error: SystemCallError, _ pid: Int32) -> Bool {
    if error.meansVanished { return true }
    do throws(SystemCallError) { return try ProcessStat.read(pid).isEnded } catch {
      return error.meansVanished
    }
  }

  /// Returns nil if the number leads to another file by now.
  static func duplicate(
    _ open: OpenDescriptor, of pid: Int32, from pidfd: Descriptor, unreadOnly: Bool = false
  ) throws(SystemCallError) -> WorkerInput? {
    try Yama.check("pidfd_getfd", pid)
    let duplicate = try open.duplicate(from: pidfd)
    if unreadOnly, duplicate.inputEvents == 0 { return nil }
    guard let status = duplicate.status, UInt64(status.st_ino) == open.inode else { return nil }
    let facts = open.kind == .socket ? try SocketFacts.read(duplicate) : nil
    return WorkerInput(pid: pid, open: open, duplicate: duplicate, facts: facts)
  }

  private func isOutward(_ input: WorkerInput) -> Bool {
    guard let facts = input.facts else { return true }
    if Self.isForOutput(input.open), !facts.isListening { return false }
    if facts.isUnused || ![AF_INET, AF_INET6, AF_UNIX].contains(facts.family) { return false }
    guard facts.family == AF_UNIX, !facts.isListening else { return true }
    if case .path(let peer) = facts.peer, daemonSockets.contains(peer) { return false }
    // Such a socket is connected within the worker, or one of a pair that it made.
    return !pids.contains(facts.peerProcess)
  }
}
