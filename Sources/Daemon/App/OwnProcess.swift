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
    spareFromTheKernel(log)
    ignoreWriteSignals()
  }

  static func kernelFeatures() -> KernelFeatures {
    var features = KernelFeatures.detect()
    // For measuring the effect of tracking, and for tests without it.
    if getenv("DORMOUSE_TRACKING").map({ String(cString: $0) }) == "off" {
      features.writeTracking = false
    }
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
  private static func spareFromTheKernel(_ log: DaemonLog) {
    guard let before = useWorkersOOMScore(), before > -900 else { return }
    do throws(SystemCallError) {
      try writeControl(oomScorePath, "-900")
    } catch {
      log(.info, "the kernel's OOM killer may choose the daemon: \(error)")
    }
  }

  private static let oomScorePath = "/proc/self/oom_score_adj"

  /// From now on, programs are started with the value for workers: the daemon's own, if it is known.
  @discardableResult
  static func useWorkersOOMScore() -> Int32? {
    // Without /proc there is nothing to inherit that could be seen or changed.
    guard let own = (try? readText(oomScorePath)).flatMap({ Int32($0.prefix { $0 != "\n" }) })
    else { return nil }
    clinux_spawn_with_oom_score(OOMScore.ofWorkers(own: own))
    return own
  }
}
