import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

/// In what a daemon and `dormouse wrap` differ, as values: `Daemon` goes by them, and doesn't ask which of
/// the two it is.
struct DaemonRole {
  var log: DaemonLog
  /// A later daemon goes on with this one's workers: what was learned of them is kept, and processes stand by
  /// with what that daemon needs. Without one, no earlier daemon has left workers here either.
  var hasSuccessor: Bool
  /// Its own cgroup is left for one in which workers' memory can be limited.
  var leavesCgroup: Bool
  /// Overrules the policies.
  var resumeOverride: ResumePreference?
  /// Processes of a worker without a cgroup are looked for below this process only.
  var looksAtDescendantsOnly: Bool
  var sampling: SampleInterval
  /// What running programs write and start counts as activity (`WorkMeter`).
  var measuresWork: Bool
  /// Bytes of all images on the disk that share the budget; nil: those of its own workers.
  var imageBytes: (@Sendable () -> Int64)?
  /// nil: workers are what the configuration says.
  var program: (any CallersProgram)?

  /// `dormouse daemon`.
  static func daemon() -> DaemonRole {
    // A group that was named is used as it is.
    DaemonRole(
      log: DaemonLog(), hasSuccessor: true, leavesCgroup: getenv("DORMOUSE_CGROUP") == nil,
      resumeOverride: Daemon.resumeOverrideInEnvironment(),
      looksAtDescendantsOnly: false, sampling: .daemon, measuresWork: false)
  }
}

/// The time between two regular looks at the machine and at what runs.
struct SampleInterval: Hashable, Sendable {
  /// While a worker runs.
  var running: Duration
  /// While all sleep.
  var resting: Duration

  static let daemon = SampleInterval(running: .seconds(1), resting: .seconds(1))

  /// Often enough for `idle_after`, and no oftener; asleep, only the machine's memory is looked at.
  static func wrapper(idleAfter: Duration) -> SampleInterval {
    SampleInterval(
      running: min(max(idleAfter / 8, .milliseconds(100)), .seconds(2)), resting: .seconds(5))
  }
}

/// The program that `dormouse wrap` stands for: its caller's, and the only worker.
protocol CallersProgram: AnyObject {
  /// What it gets of its caller.
  var inheritance: Inheritance { get }
  /// Where the wrapper's log is, for `status`.
  var logPath: String? { get }
  /// Times that it has been woken.
  var wakes: Int { get }

  /// It has its caller's descriptors now.
  func hasLaunched()
  func hasEnded(_ status: ExitStatus)
  func hasChanged(_ transition: Transition)
}
