import CLinux
import Glibc
import Hibernation
import Linux
import Supervision

/// Settings of the daemon's own process at its start.
enum OwnProcess {
  /// The daemon must be able to act when there is no memory left, and the kernel must not kill it for memory.
  static func protect(_ log: DaemonLog) {
    if clinux_become_subreaper() < 0 {
      log(.warning, "can't adopt orphaned processes of workers (PR_SET_CHILD_SUBREAPER)")
    }
    clinux_stay_out_of_core_files()
    // A worker costs ten descriptors and more, and 1024 is the usual limit.
    clinux_raise_descriptor_limit()
    _ = clinux_lock_memory()
    spareFromTheKernel(OOMScoreOfProcess()) { log($0, $1) }
    ignoreWriteSignals()
  }

  /// - Parameter tracking: `off`: for measuring the effect of tracking, and for tests without it.
  static func kernelFeatures(
    _ detected: KernelFeatures = .detect(),
    tracking: String? = getenv("DORMOUSE_TRACKING").map { String(cString: $0) }
  ) -> KernelFeatures {
    var features = detected
    if tracking == "off" { features.writeTracking = false }
    return features
  }

  /// A broken pipe, or a limit on the size of files (setrlimit(2)), makes write(2) fail and doesn't end the
  /// daemon.
  static func ignoreWriteSignals() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }

  /// Lowers the daemon's own oom_score_adj where that is permitted. No worker gets a protected one, also
  /// where the daemon was started with it (`OOMScoreAdjust=` in its unit).
  static func spareFromTheKernel(
    _ score: some OwnOOMScore, _ log: (DaemonLog.Priority, String) -> Void
  ) {
    guard let before = useWorkersOOMScore(score), before > spared else { return }
    do throws(SystemCallError) { try score.set(spared) } catch {
      log(.info, "the kernel's OOM killer may choose the daemon: \(error)")
    }
  }

  private static let spared: Int32 = -900

  /// From now on, programs are started with the value for workers: the daemon's own, if it is known.
  @discardableResult
  static func useWorkersOOMScore(_ score: some OwnOOMScore = OOMScoreOfProcess()) -> Int32? {
    guard let own = score.own else { return nil }
    score.spawn(with: OOMScore.ofWorkers(own: own))
    return own
  }
}

/// The oom_score_adj of this process and of those that it starts. Tests provide their own.
protocol OwnOOMScore {
  /// nil: without /proc there is nothing to inherit that could be seen or changed.
  var own: Int32? { get }
  func set(_ score: Int32) throws(SystemCallError)
  func spawn(with score: Int32)
}

struct OOMScoreOfProcess: OwnOOMScore {
  private static let path = "/proc/self/oom_score_adj"

  var own: Int32? {
    // Without /proc nothing can be read: nil, as the protocol says.
    (try? readText(Self.path)).flatMap { Int32($0.prefix { $0 != "\n" }) }
  }

  func set(_ score: Int32) throws(SystemCallError) { try writeControl(Self.path, "\(score)") }
  func spawn(with score: Int32) { clinux_spawn_with_oom_score(score) }
}
