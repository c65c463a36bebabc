import Lifecycle
import Policy
import Supervision

/// A launch's readiness probe: what the answers add up to, and when the next question is due.
final class ReadinessProbe {
  fileprivate var state: ProbeState
  fileprivate var question: Question?
  fileprivate var timer: EventLoop.Token?

  fileprivate init(_ probe: Policy.Probe) { state = ProbeState(probe, for: .readiness) }
}

// Readiness that is asked for (`exec`, `httpGet`, `tcpSocket`), until the answer is yes, or the
// watchdog or the worker ends the launch.

extension Daemon {
  func probeReadiness(_ runtime: WorkerRuntime, _ probe: Policy.Probe) {
    endReadinessProbe(runtime)
    let asked = ReadinessProbe(probe)
    runtime.readinessProbe = asked
    schedule(asked, runtime, at: asked.state.firstQuestion(after: EventLoop.now))
  }

  private func schedule(_ asked: ReadinessProbe, _ runtime: WorkerRuntime, at moment: Instant) {
    asked.timer = loop.at(moment) { [unowned self] in
      asked.timer = nil
      guard runtime.readinessProbe === asked, let process = runtime.process,
        engine.state(of: runtime.id) == .launching
      else { return }
      let began = EventLoop.now
      asked.question = senses.probes.ask(asked.state.probe, process) { [unowned self] outcome in
        asked.question = nil
        let now = EventLoop.now
        if asked.state.take(success: outcome == .success) == .passing {
          endReadinessProbe(runtime)
          if runtime.readiness?.isReady == false { becameReady(runtime) }
        } else {
          schedule(asked, runtime, at: asked.state.nextQuestion(after: began, answeredAt: now))
        }
      }
    }
  }

  /// It is ready, or gone.
  func endReadinessProbe(_ runtime: WorkerRuntime) {
    guard let asked = runtime.readinessProbe else { return }
    runtime.readinessProbe = nil
    if let timer = asked.timer { loop.cancel(timer) }
    if let question = asked.question { senses.probes.drop(question) }
  }
}
