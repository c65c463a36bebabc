import CLinux
import Glibc
import Synchronization

/// The calls in which threads waited before they were stopped.
///
/// On arm64, a call that returned EINTR because of a stop has lost its first argument: the result
/// is in the same register, and the kernel shows the argument nowhere. The argument is needed to
/// make the call again, so it is read before the stop. On other architectures nothing is recorded.
/// A thread without a record sees an EINTR.
///
/// The record is kept until the calls can be made again (`forget`). With `keep(in:)` it survives
/// the daemon.
public enum CallsBeforeStop {
  /// The calls by thread ID.
  typealias Calls = [Int32: WaitingCall]

  private struct State {
    var directory: String?
    var processes: [ProcessIdentity: Calls] = [:]
  }

  private static let state = Mutex(State())

  /// The time for which `record` waits for threads that run. `maxRunTime` is the processor time in
  /// ns that such a thread may use meanwhile.
  private static let timeout = Duration.milliseconds(100)
  private static let maxRunTime: UInt64 = 2_000_000

  /// Writes each process's calls, from now on, also to a file of this directory, which exists. The
  /// next daemon reads the files. Files of processes that have ended are removed.
  public static func keep(in directory: String) {
    guard clinux_stop_hides_calls() == 1 else { return }
    state.withLock { $0.directory = directory }
    // If the directory can't be listed, some files stay that name no living process. They are never
    // read.
    for name in (try? listDirectory(directory)) ?? [] {
      if ProcessIdentity(callsFile: name)?.hasEnded != false {
        discardFile("\(directory)/\(name)")
      }
    }
  }

  /// Records the calls of threads. Call it before they are stopped; threads that are stopped
  /// already keep their entries.
  ///
  /// It waits a moment for threads that run, because most are in a call soon. A thread that runs on
  /// has no entry: when it stops, it may be in another call with the same registers except for the
  /// first.
  ///
  /// - Parameter waits: false: it doesn't wait for threads that run.
  static func record(_ pids: some Sequence<Int32>, waits: Bool = true) {
    guard clinux_stop_hides_calls() == 1 else { return }
    let limit = Deadline(in: waits ? timeout : .zero)
    for pid in pids {
      // An error means that the process has ended.
      guard let process = try? ProcessStat.read(pid).identity else { continue }
      let calls = readCalls(of: process, after: recorded(of: process), until: limit)
      if state.withLock({ $0.processes.count % 64 == 63 }) { removeEnded() }
      state.withLock { $0.processes[process] = calls }
      // If the file can't be written, only this daemon has the calls.
      if let path = path(of: process) {
        try? StateFile.replace(path, with: text(of: calls), durability: .untilBoot)
      }
    }
  }

  private static func readCalls(
    of process: ProcessIdentity, after earlier: Calls, until limit: Deadline
  ) -> Calls {
    var calls: Calls = [:]
    // A process that has ended has no threads.
    var pending = (try? threads(of: process.pid)) ?? []
    var began: [Int32: UInt64] = [:]
    _ = waitUntil(limit) {
      pending = pending.filter { thread in
        let directory = "/proc/\(process.pid)/task/\(thread)"
        // A thread that has ended has no entry.
        guard let text = try? readText("\(directory)/syscall") else { return false }
        calls[thread] = call(after: earlier[thread], shownAs: text)
        guard text.hasPrefix("running"), let ran = runTime(in: directory) else { return false }
        let start = began[thread] ?? ran
        began[thread] = start
        // If the time is less than at first, another thread has got the ID.
        return ran < start + maxRunTime
      }
      return pending.isEmpty
    }
    return calls
  }

  /// The processor time of a thread in ns. It is `nil` if the kernel doesn't count it, or if the
  /// thread has ended.
  private static func runTime(in directory: String) -> UInt64? {
    // The file may not exist, as said above.
    (try? readText("\(directory)/schedstat")).flatMap { text in
      text.split(separator: " ").first.flatMap { UInt64($0) }
    }
  }

  /// Returns the call to record for a thread for which /proc shows `text`; `nil` if there is none.
  static func call(after before: WaitingCall?, shownAs text: String) -> WaitingCall? {
    WaitingCall(text) ?? before?.current(shownAs: text, isHidden: true)
  }

  /// Completes the registers of a thread whose call returned EINTR, if it is the recorded call.
  static func complete(_ registers: inout clinux_registers, of thread: Int32, in pid: Int32) {
    guard clinux_stop_hides_calls() == 1, clinux_registers_result(&registers) == -Int64(EINTR),
      // An error means that the process has ended; it makes no call.
      let process = try? ProcessStat.read(pid).identity,
      let recorded = recorded(of: process)[thread]
    else { return }
    var call = clinux_call()
    call.number = recorded.number
    call.stack = recorded.stack
    call.instruction = recorded.instruction
    withUnsafeMutableBytes(of: &call.arguments) { target in
      recorded.arguments.withUnsafeBytes { target.copyMemory(from: $0) }
    }
    _ = clinux_registers_complete_call(&registers, &call)
  }

  /// Removes a process's record. Its threads' registers already say that the calls are made again.
  static func forget(_ pid: Int32) {
    guard clinux_stop_hides_calls() == 1,
      // The record of a process that has ended is removed by `removeEnded`.
      let process = try? ProcessStat.read(pid).identity
    else { return }
    forget(process)
  }

  private static func forget(_ process: ProcessIdentity) {
    state.withLock { $0.processes[process] = nil }
    path(of: process).map { _ = discardFile($0) }
  }

  private static func removeEnded() {
    let processes = state.withLock { Array($0.processes.keys) }
    for process in processes where process.hasEnded { forget(process) }
  }
}

// MARK: - the files

extension CallsBeforeStop {
  /// Returns the calls that were recorded before a process was stopped or frozen, if any.
  static func recorded(of process: ProcessIdentity) -> Calls {
    if let calls = state.withLock({ $0.processes[process] }) { return calls }
    // If there is no file, no call is recorded.
    return path(of: process).flatMap { try? readText($0) }.map(calls(in:)) ?? [:]
  }

  private static func path(of process: ProcessIdentity) -> String? {
    state.withLock { $0.directory.map { "\($0)/\(process.pid)-\(process.startTime)" } }
  }

  /// Encodes the calls as lines: a thread's ID and the text that /proc has shown for it.
  static func text(of calls: Calls) -> [UInt8] {
    Array(calls.map { "\($0.key) \($0.value.line)\n" }.joined().utf8)
  }

  static func calls(in text: String) -> Calls {
    var calls: Calls = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
      if parts.count == 2, let thread = Int32(parts[0]) {
        calls[thread] = WaitingCall(String(parts[1]))
      }
    }
    return calls
  }
}

extension ProcessIdentity {
  fileprivate init?(callsFile name: String) {
    let parts = name.split(separator: "-")
    guard parts.count == 2, let pid = Int32(parts[0]), let startTime = UInt64(parts[1]) else {
      return nil
    }
    self.init(pid: pid, startTime: startTime)
  }
}

extension WaitingCall {
  /// The call as /proc shows it.
  var line: String {
    let values = (arguments + [stack, instruction]).map { "0x" + String($0, radix: 16) }
    return ([String(number)] + values).joined(separator: " ")
  }
}
