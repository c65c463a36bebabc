import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

/// The differences between a daemon and `dormouse wrap`, as values: `Daemon` uses them, and doesn't ask which
/// of the two it is.
package struct DaemonRole {
  var log: DaemonLog
  /// A later daemon takes over this one's workers: what was learned of them is kept, and helper processes hold
  /// what that daemon needs. If false, no earlier daemon has left workers here either.
  var hasSuccessor: Bool
  /// Its own cgroup is left for one in which workers' memory can be limited.
  var leavesCgroup: Bool
  /// Overrules the policies.
  var resumeOverride: ResumePreference?
  /// Processes of a worker without a cgroup are looked for below this process only.
  var looksAtDescendantsOnly: Bool
  var pace = SamplingPace()
  /// What running programs write and start counts as activity (`WorkMeter`).
  var metersWork: Bool
  /// Bytes of all images on the disk that share the budget; nil: those of its own workers.
  var sharedImages: (@Sendable () -> Int64)?
  /// nil: the configuration declares the workers.
  var program: (any CallersProgram)?

  /// `dormouse daemon`.
  static func daemon() -> DaemonRole {
    // A cgroup that was named is used as it is.
    DaemonRole(
      log: DaemonLog(), hasSuccessor: true, leavesCgroup: getenv("DORMOUSE_CGROUP") == nil,
      resumeOverride: ResumeChoice.fromEnvironment().override,
      looksAtDescendantsOnly: false, metersWork: false)
  }

  /// For one worker, the program of the daemon's caller.
  ///
  /// - Parameters:
  ///   - log: a file; nil: only errors are logged.
  ///   - errors: gets them then; nil: standard error.
  ///   - sharedImages: bytes of all images on the disk that share the budget.
  package static func standingFor(
    _ program: any CallersProgram, log: String?, errors: Descriptor? = nil,
    pace: SamplingPace, sharedImages: @escaping @Sendable () -> Int64
  ) -> DaemonRole {
    DaemonRole(
      log: DaemonLog(ofWrapper: log, errors: errors), hasSuccessor: false,
      // It shares its cgroup with its caller.
      leavesCgroup: false, looksAtDescendantsOnly: true, pace: pace, metersWork: true,
      sharedImages: sharedImages, program: program)
  }

  /// `nil`: workers get no cgroup of their own.
  func cgroups(
    of stateDirectory: String, limitsObstacle: DelegatedGroup.Obstacle?
  ) -> CgroupRoot? {
    do throws(CgroupError) {
      return try CgroupRoot.detect(
        name: CgroupRoot.name(forStateDirectory: stateDirectory),
        isCounted: leavesCgroup && limitsObstacle == nil)
    } catch {
      log(.notice, "no cgroup for the workers: \(error); they are suspended by signal (SIGSTOP)")
      return nil
    }
  }
}

/// The program that `dormouse wrap` runs for its caller: the only worker.
package protocol CallersProgram: AnyObject {
  /// What it inherits from its caller.
  var inheritance: Inheritance { get }
  /// Where the wrapper's log is, for `status`.
  var logPath: String? { get }
  /// How often it has been woken.
  var wakes: Int { get }
  /// What started it, for people; nil: nothing with a name.
  var host: String? { get }
  /// Where it was started.
  var directory: String? { get }

  /// The program has its caller's descriptors now.
  func hasLaunched()
  func hasEnded(_ status: ExitStatus)
  func hasChanged(_ transition: Transition)
}
