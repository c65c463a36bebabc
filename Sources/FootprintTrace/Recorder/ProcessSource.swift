import CLinux
import Glibc
import Linux
import Policy

/// A running process and its descendants.
final class ProcessSource: RecordingSource {
  private let identity: ProcessIdentity
  private let pidfd: Descriptor
  private let warning: Int32
  private var lastTree = ProcessTree(processes: [])
  private var lastScan: Int64 = .min

  let subject = RecordingHeader.Subject.process
  let name: String
  let command: [String]
  let state: String? = nil
  var pid: Int32? { identity.pid }
  var descriptor: Int32 { pidfd.raw }

  /// - Parameter warning: the signal that asks the process to free memory.
  init(_ pid: Int32, warning: Int32) throws(RecordingFailure) {
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(pid)
      identity = stat.identity
      pidfd = try identity.openPidfd()
      name = stat.name
      // The command is only for the header. A process may hide its arguments.
      command = (try? ProcessCommand.read(pid).arguments) ?? []
    } catch {
      if error.meansVanished { throw .noProcess(pid) }
      throw .system(error)
    }
    self.warning = warning
  }

  func updates(at now: Double) throws(RecordingFailure) -> RecordingUpdates {
    let hasEnded = try recording { () throws(SystemCallError) in
      try pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
    }
    return RecordingUpdates(end: hasEnded ? RecordingEnd(at: now, reason: .exited) : nil)
  }

  /// All processes of the machine must be read to find the descendants, so this is done at most
  /// four times a second.
  func tree() throws(RecordingFailure) -> ProcessTree {
    if Clocks.monotonic - 250_000_000 >= lastScan {
      lastTree = try recording { () throws(SystemCallError) in
        try ProcessTree.discover(root: identity)
      }
      lastScan = Clocks.monotonic
    }
    return lastTree
  }

  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark? {
    try recording { () throws(SystemCallError) in
      try lastTree.warn(by: warning, at: now)
    }
  }

  func handle(_ signal: SignalQueue.Arrival) -> Bool { true }
  func release() {}
}

/// A program that is started for the recording, with its descendants.
final class CommandSource: RecordingSource {
  private let child: ForegroundChild
  private let warning: Int32
  private var lastTree = ProcessTree(processes: [])
  private(set) var end: ForegroundChild.End?

  let subject = RecordingHeader.Subject.command
  let name: String
  let command: [String]
  let state: String? = nil
  var pid: Int32? { child.identity.pid }
  var descriptor: Int32 { child.pidfd.raw }

  init(
    _ path: String, _ command: [String], firstArgument: Int, warning: Int32
  ) throws(RecordingFailure) {
    self.command = command
    self.warning = warning
    name = command.first?.split(separator: "/").last.map(String.init) ?? path
    // A descendant that loses its parent becomes a child of this process, so it is still found.
    clinux_become_subreaper()
    do throws(SystemCallError) {
      child = try ForegroundChild(path: path, firstArgument: firstArgument)
    } catch { throw .start(error) }
  }

  func updates(at now: Double) throws(RecordingFailure) -> RecordingUpdates {
    end = child.reap()
    switch end {
    case nil: return RecordingUpdates()
    case .exited(let code)?:
      return RecordingUpdates(end: RecordingEnd(at: now, reason: .exited, code: code))
    case .signaled(let signal)?:
      return RecordingUpdates(end: RecordingEnd(at: now, reason: .exited, signal: signal))
    }
  }

  func tree() throws(RecordingFailure) -> ProcessTree {
    lastTree = try recording { () throws(SystemCallError) in
      try ProcessScan.readDescendants().tree(root: child.identity, session: nil)
    }
    return lastTree
  }

  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark? {
    try recording { () throws(SystemCallError) in try lastTree.warn(by: warning, at: now) }
  }

  /// The program gets the terminal's signals itself. The recording lasts as long as the program.
  func handle(_ signal: SignalQueue.Arrival) -> Bool {
    if !signal.isFromTerminal, end == nil {
      sendSignal(signal.number, to: child.identity.pid)
    }
    return false
  }

  /// The program was started for the recording, and ends with it.
  func release() {
    guard child.reap() == nil else { return }
    // A process that can't be signalled is killed below.
    _ = try? tree().signalAll(SIGTERM)
    // An error counts as not ended.
    let ended = try? pollDescriptor(
      child.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(5)))
    // If that fails, nothing more can be done.
    if ended != true { try? ProcessTree.killAll(root: child.identity) }
    _ = try? pollDescriptor(child.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(5)))
    _ = child.reap()
  }
}

extension ProcessTree {
  /// Sends the signal only to processes that have a handler for it: it would end the others.
  fileprivate func warn(
    by signal: Int32, at now: Double
  ) throws(SystemCallError) -> FootprintMark {
    // A process that has ended catches no signal.
    let listeners = processes.filter { (try? ProcessStatus.read($0.pid))?.catches(signal) == true }
    let name = Signals.text(signal)
    guard try ProcessTree(processes: listeners).signalAll(signal) > 0 else {
      return FootprintMark(
        at: now, kind: .failed, text: "not warned: none of its processes handles \(name)")
    }
    return FootprintMark(at: now, kind: .warning, text: "warned by \(name)")
  }
}
