import CLinux
import Synchronization

/// The calls in which threads waited before they were stopped.
///
/// On arm64 a call that returns EINTR for a stop has lost its first argument: the result is in the same register. To
/// make the call again, the argument is needed, and it is known only from before. Elsewhere nothing is recorded. The
/// record doesn't survive the daemon: without it the program sees an EINTR.
enum CallsBeforeStop {
  private struct Entry {
    var pid: Int32
    var call: WaitingCall
  }

  private static let entries = Mutex<[Int32: Entry]>([:])

  /// How long `record` waits for running threads.
  private static let patience = Duration.milliseconds(4)

  /// Call it before threads are stopped. Threads that are stopped already keep their entries. For running threads it looks
  /// again for a moment: most are in a call soon. One that runs on has no entry: it may be in another call when it stops,
  /// with the same registers but the first.
  static func record(_ pids: some Sequence<Int32>) {
    guard clinux_stop_hides_calls() == 1 else { return }
    let limit = Deadline(in: patience)
    let earlier = entries.withLock { $0 }
    for pid in pids {
      var found: [Int32: Entry] = [:]
      // A process that has ended has no threads.
      var left = (try? threads(of: pid)) ?? []
      _ = waitUntil(limit) {
        left = left.filter { thread in
          // A thread that has ended has no entry.
          guard let text = try? readText("/proc/\(pid)/task/\(thread)/syscall") else {
            return false
          }
          if text.hasPrefix("running") { return true }
          let before = earlier[thread].flatMap { $0.pid == pid ? $0.call : nil }
          found[thread] = Self.call(after: before, shownAs: text).map { Entry(pid: pid, call: $0) }
          return false
        }
        return left.isEmpty
      }
      entries.withLock { entries in
        entries = entries.filter { $0.value.pid != pid }.merging(found) { $1 }
      }
    }
  }

  /// The call that is recorded of a thread, if `text` is what /proc shows of it; `nil`: none.
  static func call(after before: WaitingCall?, shownAs text: String) -> WaitingCall? {
    WaitingCall(text) ?? before?.current(shownAs: text, isHidden: true)
  }

  /// Completes the registers of a thread whose call returned EINTR, if that is the call from before.
  static func complete(_ registers: inout clinux_registers, of thread: Int32) {
    guard clinux_stop_hides_calls() == 1,
      let before = entries.withLock({ $0[thread]?.call }), before.arguments.count == 6
    else { return }
    var call = clinux_call()
    call.number = before.number
    call.stack = before.stack
    call.instruction = before.instruction
    withUnsafeMutableBytes(of: &call.arguments) { target in
      before.arguments.withUnsafeBytes { target.copyMemory(from: $0) }
    }
    _ = clinux_registers_know_call(&registers, &call)
  }
}
