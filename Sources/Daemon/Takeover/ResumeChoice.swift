import Control
import Glibc
import Hibernation
import Policy

/// Decides how a worker is resumed. Its policy decides, unless the environment overrides it, for
/// tests.
struct ResumeChoice: Sendable {
  /// The environment's choice, which overrides policies; nil if there is none.
  let override: ResumePreference?

  func preference(_ rules: HibernationRules) -> ResumePreference {
    override ?? ResumePreference(rawValue: rules.resume.rawValue) ?? .auto
  }
}

extension ResumeChoice {
  /// - Parameter text: the value of `DORMOUSE_RESUME`.
  init(environment text: String?) {
    self.init(override: text.flatMap(ResumePreference.init(rawValue:)))
  }
}

extension CodedText {
  /// How a worker's memory is restored, for `status`.
  static func of(_ plan: RestorePlan) -> CodedText {
    plan.isLazy
      ? CodedText("lazy", "lazily (\(plan.reason))") : .eager(plan.reason)
  }

  static func eager(_ reason: String) -> CodedText { CodedText("eager", "in full (\(reason))") }
}
