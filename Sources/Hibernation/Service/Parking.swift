import CLinux
import Linux

/// The state of a process's threads if it rests stopped and traced, because it can't be frozen.
///
/// A tracer's death detaches its tracees, and a SIGCONT (a service manager sends one with each
/// SIGTERM) then lets them run. A worker whose memory is in an image must not run its own code. So
/// every thread gets other registers before a page is freed: it waits in the scratch area, with all
/// signals masked, until `leave` or `recover` gives it its own registers again.
struct Parking {
  private let session: TraceSession
  private let memory: ProcessMemory
  private let scratch: UInt64

  init(session: TraceSession, memory: ProcessMemory, scratch: UInt64) {
    self.session = session
    self.memory = memory
    self.scratch = scratch
  }

  /// Gives all threads their own registers and masks again and unmaps the scratch area. The memory
  /// must have been restored. The threads stay stopped and traced.
  func leave() throws(TraceError) {
    // A process that was killed while it slept needs no registers.
    guard session.isAlive() else { return }
    do throws(TraceError) {
      var injector = try Injector(
        session: session, memory: memory,
        leftBehind: .init(address: scratch, length: Injector.scratchLength))
      try injector.finish()
      for thread in session.threads { try session.restore(thread) }
      // On other processors the kernel restarts calls itself. A signal may have come during the
      // sleep.
      if clinux_stop_hides_calls() == 1 { try session.restartInterruptedSyscalls() }
    } catch {
      guard case .vanished = error else { throw error }
    }
  }

  /// True if parked threads must spin: the worker's own seccomp filter could kill it for the system
  /// call that a parked thread makes.
  static func mustSpin(_ pid: Int32) -> Bool {
    // If the mode is unknown, the process counts as filtered: spinning is always permitted.
    ((try? ProcessStatus.read(pid))?.seccomp ?? 2) != 0
  }
}
