import Control

/// One mechanism of the kernel, or one permission, and what came of trying it. docs/doctor.md is
/// its documentation as JSON.
public struct DoctorCheck: Encodable, Hashable, Sendable {
  public enum Result: String, Encodable, Hashable, Sendable {
    case works
    /// It works, with a loss that `lost` names.
    case limited
    case missing
  }

  public enum Need: String, Encodable, Hashable, Sendable {
    /// Without it there is no hibernation, or no daemon.
    case required
    /// Without it something is slower, coarser or less safe.
    case useful
    /// Dormouse doesn't need it; said because people ask.
    case informational
  }

  /// For programs; never changes its meaning.
  public var id: String
  public var name: String
  public var need: Need
  public var result: Result
  /// What was seen when it was tried.
  public var found: String
  /// What doesn't work, or works less well, without it.
  public var lost: String
  /// The command or setting that enables it.
  public var enable: String
}

/// What this machine and user allow.
public struct DoctorReport: Encodable, Sendable {
  /// Of Dormouse.
  public var version: String
  /// `uname -r`.
  public var kernel: String
  /// The effective user id that all was tried with.
  public var user: UInt32
  /// In the order of the table.
  public var checks: [DoctorCheck]
  /// A whole hibernation, if one succeeded.
  public var trial: HibernationTrial.Outcome?
  /// What sums it up: `hibernation_works`, `hibernation_missing` or `daemon_does_not_start`.
  public var verdict: CodedText

  /// Hibernation works in some way.
  public var hibernates: Bool { trial != nil }
}
