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
  func followStreams() {
    hibernation.onStreamFailure { [mailbox] name, error in
      mailbox.post {
        $0.log(.error, "\(name): ended, for its missing pages can't be had: \(error)")
      }
    }
    // Without any activity of the worker its memory is another than when it was woken.
    hibernation.onStreamEnd { [mailbox] name in
      mailbox.post { $0.measure(WorkerID(name)) }
    }
  }

  static func resumeOverrideInEnvironment() -> ResumePreference? {
    guard let text = getenv("DORMOUSE_RESUME").map({ String(cString: $0) }) else { return nil }
    return text == "hot-first" ? .hotFirst : ResumePreference(rawValue: text)
  }

  /// A process that goes on with the pages of workers if this one dies, from the first worker on
  /// that needs it. Without it, they would wait for the next daemon.
  ///
  /// Not in `dormouse wrap`: its program doesn't outlive it, so nobody would wait.
  func startStandbyPager() {
    if wrapped != nil { return }
    if let standby, !standby.hasEnded() { return }
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = max(0, readlink("/proc/self/exe", &buffer, buffer.count))
    let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    do {
      let new = try Standby(command: [own, "pager"])
      standby = new
      hibernation.set(new)
    } catch { log(.warning, "no standby pager: \(error)") }
  }
}

extension CodedText {
  /// For `status`.
  static func of(_ plan: ResumePlan) -> CodedText {
    plan.isHotFirst
      ? CodedText("hot_first", "hot first: \(plan.reason)")
      : CodedText("eager", "eager, because \(plan.reason)")
  }
}
