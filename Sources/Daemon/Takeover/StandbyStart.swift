import CLinux
import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

extension Daemon {
  /// What decides between the ways of resuming; the environment overrules policies, for tests.
  func resumePreference(_ rules: HibernationRules) -> ResumePreference {
    resumeOverride ?? ResumePreference(rawValue: rules.resume.rawValue) ?? .auto
  }

  /// What becomes of resumes of which pages are still missing.
  func followFills() {
    hibernation.onFillFailure { [mailbox] name, error in
      mailbox.post {
        $0.log(.error, "\(name): ended, for its missing pages can't be had: \(error)")
      }
    }
    // Without any activity of the worker its memory is another than when it was woken.
    hibernation.onFillEnd { [mailbox] name in
      mailbox.post { $0.senses.meter.measure(WorkerID(name)) }
    }
  }

  static func resumeOverrideInEnvironment() -> ResumePreference? {
    guard let text = getenv("DORMOUSE_RESUME").map({ String(cString: $0) }) else { return nil }
    return text == "lazy" ? .lazy : ResumePreference(rawValue: text)
  }

  /// A process that goes on with the pages of workers if this one dies, from the first worker on
  /// that needs it. Without it, they would wait for the next daemon.
  ///
  /// Not in `dormouse wrap`: its program doesn't outlive it, so nobody would wait.
  func startStandbyPager() {
    if wrapped != nil { return }
    if let standby, !standby.hasEnded() { return }
    // On another thread: it waits until the program runs. A start that is under way is enough.
    jobs.run(about: "standby pager", within: .seconds(10)) {
      Result { try Standby(command: [try Self.ownExecutable(), "pager"]) }
    } then: { [unowned self] outcome in
      switch outcome {
      case .done(.success(let new)):
        standby = new
        hibernation.set(new)
      case .done(.failure(let error)): log(.warning, "no standby pager: \(error)")
      case .overdue: log(.warning, "no standby pager: its program didn't start within 10 s")
      case .busy: break
      }
    }
  }
}

extension CodedText {
  /// For `status`.
  static func of(_ plan: RestorePlan) -> CodedText {
    plan.isLazy
      ? CodedText("lazy", "lazy restore: \(plan.reason)")
      : CodedText("eager", "eager, because \(plan.reason)")
  }
}
