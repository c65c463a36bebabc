import Glibc
import Hibernation
import Lifecycle
import Linux
import PolicyFile

/// The differences between the daemon and `dormouse wrap`, as values: `Daemon` reads them, and
/// never asks which of the two it is.
package struct DaemonRole {
  var log: DaemonLog
  /// A later daemon takes over the workers of this one: what was learned about them is kept, and
  /// helper processes keep what that daemon needs. If false, no earlier daemon has left workers
  /// here either.
  var hasSuccessor: Bool
  /// The daemon leaves its own cgroup, so that a cgroup is available in which the memory of workers
  /// can be limited.
  var leavesCgroup: Bool
  /// Takes precedence over the policies; nil: the policies decide.
  var resumeOverride: ResumePreference?
  /// The processes of a worker without a cgroup are searched only among the descendants of this
  /// process.
  var scansOnlyDescendants: Bool
  var pace = SamplingPace()
  /// A running program's writes and new processes count as activity (`WorkMeter`).
  var metersWork: Bool
  /// Returns the bytes of all images on the disk that share one budget; nil: only the images of
  /// this daemon's workers count.
  var sharedImages: (@Sendable () -> Int64)?
  /// The program of the daemon's caller; nil: the configuration declares the workers.
  var program: (any CallersProgram)?

  /// The role of `dormouse daemon`.
  static func daemon() -> DaemonRole {
    // A cgroup that the operator has named is used as it is.
    DaemonRole(
      log: DaemonLog(), hasSuccessor: true, leavesCgroup: getenv("DORMOUSE_CGROUP") == nil,
      resumeOverride: getenv("DORMOUSE_RESUME").flatMap {
        ResumePreference(rawValue: String(cString: $0))
      },
      scansOnlyDescendants: false, metersWork: false)
  }

  /// The role for one worker, which is the program of the daemon's caller.
  ///
  /// - Parameters:
  ///   - log: the path of the log file; nil: only errors are logged.
  ///   - errors: where errors are written if `log` is nil; nil: standard error.
  ///   - sharedImages: returns the bytes of all images on the disk that share the budget.
  package static func wrapper(
    _ program: any CallersProgram, log: String?, errors: Descriptor? = nil,
    pace: SamplingPace, sharedImages: @escaping @Sendable () -> Int64
  ) -> DaemonRole {
    DaemonRole(
      log: DaemonLog(ofWrapper: log, errors: errors), hasSuccessor: false,
      // The wrapper shares its cgroup with its caller.
      leavesCgroup: false, scansOnlyDescendants: true, pace: pace, metersWork: true,
      sharedImages: sharedImages, program: program)
  }

  /// Returns the cgroup below which workers get cgroups of their own; nil: they get none.
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
  /// What the program inherits from the wrapper's caller.
  var inheritance: Inheritance { get }
  /// The path of the wrapper's log, for `status`.
  var logPath: String? { get }
  /// How often the program has been woken.
  var wakes: Int { get }
  /// A readable name of what started the wrapper, such as an editor; nil: it has no known name.
  var host: String? { get }
  /// The working directory in which the wrapper was started.
  var directory: String? { get }

  /// The program has been launched, and has its caller's descriptors.
  func didLaunch()
  func didEnd(_ status: ExitStatus)
  func didChange(_ transition: Transition)
}

/// The daemon's settings at its start.
public struct DaemonSettings: Sendable {
  public var configuration: DaemonConfiguration
  public var stateDirectory: String
  public var socket: String
  /// The environment that workers inherit.
  public var environment: [String: String]
  public var version: String
  /// Reads the configuration again. It is called on a thread that may wait for the disk.
  public var reload: @Sendable () -> ParseResult<DaemonConfiguration>

  public init(
    configuration: DaemonConfiguration, stateDirectory: String, socket: String,
    environment: [String: String], version: String,
    reload: @escaping @Sendable () -> ParseResult<DaemonConfiguration>
  ) {
    self.configuration = configuration
    self.stateDirectory = stateDirectory
    self.socket = socket
    self.environment = environment
    self.version = version
    self.reload = reload
  }
}
