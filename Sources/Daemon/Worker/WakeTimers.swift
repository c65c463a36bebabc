import Lifecycle
import Linux
import Policy
import Supervision

// What sleeping workers are woken by beside their inputs: their own timers, and signals that wait.

extension Daemon {
  /// It has just fallen asleep.
  func setAlarm(for runtime: WorkerRuntime, _ times: [DueTime]) {
    cancelAlarm(of: runtime)
    guard let shortest = runtime.configuration.policy.background.wakeForTimers else { return }
    let now = EventLoop.now
    guard
      let wake = TimerWake.first(
        of: times, shortest: shortest, sinceLast: runtime.lastAlarm.map { now - $0 })
    else { return }
    setAlarm(for: runtime, at: now + wake.delay, wake.why)
  }

  func setAlarm(for runtime: WorkerRuntime, at instant: Instant, _ why: String) {
    runtime.alarm = (
      at: instant,
      token: loop.at(instant) { [unowned self] in
        runtime.alarm = nil
        runtime.lastAlarm = EventLoop.now
        driver.send(.timerDue(runtime.id, why))
      }
    )
  }

  /// It runs again, or has ended.
  func cancelAlarm(of runtime: WorkerRuntime) {
    guard let alarm = runtime.alarm else { return }
    loop.cancel(alarm.token)
    runtime.alarm = nil
  }

  // MARK: signals

  /// A signal that was sent to a sleeping worker waits in the kernel, which announces that to nobody.
  /// Only the root process is looked at: that is the pid that people know.
  func lookForSignals() {
    for runtime in workers.values where engine.state(of: runtime.id)?.sleeps == true {
      guard !runtime.isBusy, let pid = runtime.process?.identity.pid,
        let pending = try? ProcessStatus.unheededSignals(of: pid),
        let signal = Self.askingSignals.first(where: { ProcessStatus.contains(pending, $0) })
      else { continue }
      driver.send(.wakeNeeded(runtime.id, "signal \(signal), which was sent to it"))
    }
    loop.after(.seconds(10)) { [unowned self] in lookForSignals() }
  }

  /// Signals that ask a program to do something. Not those of job control, nor what the end of a child or a
  /// change of a terminal brings. HUP, INT, QUIT, USR1, USR2, ALRM, TERM, VTALRM, PROF: signal(7).
  private static let askingSignals: [Int32] = [1, 2, 3, 10, 12, 14, 15, 26, 27]
}
