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

  /// Call it before threads are stopped. Threads that are stopped already keep their entries.
  static func record(_ pids: some Sequence<Int32>) {
    guard clinux_stop_hides_calls() == 1 else { return }
    for pid in pids {
      // A process that has ended has no threads.
      let threads = (try? threads(of: pid)) ?? []
      let found = threads.compactMap { thread in
        WaitingCall.read(thread: thread, of: pid).map { (thread, Entry(pid: pid, call: $0)) }
      }
      let current = Set(threads)
      entries.withLock { entries in
        entries = entries.filter { $0.value.pid != pid || current.contains($0.key) }
        for (thread, entry) in found { entries[thread] = entry }
      }
    }
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
