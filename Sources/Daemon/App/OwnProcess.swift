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
    let score = OwnOOMScore()
    score.useForWorkers()
    score.lower { log($0, $1) }
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
}

/// The oom_score_adj of this process and of those that it starts.
struct OwnOOMScore {
  /// Tests have another file.
  var path = "/proc/self/oom_score_adj"

  private static let spared: Int32 = -900

  /// nil: without /proc there is nothing to inherit that could be seen or changed.
  private var own: Int32? { (try? readText(path)).flatMap { Int32($0.prefix { $0 != "\n" }) } }

  /// The daemon's own, if it is known. No worker gets a protected one, also where the daemon was started with it
  /// (`OOMScoreAdjust=` in its unit).
  var ofWorkers: Int32? { own.map { OOMScore.ofWorkers(own: $0) } }

  /// From now on, programs are started with the value for workers. Before this process's own is lowered.
  func useForWorkers() {
    if let ofWorkers { clinux_spawn_with_oom_score(ofWorkers) }
  }

  /// Lowers the daemon's own where that is permitted.
  func lower(_ log: (DaemonLog.Priority, String) -> Void) {
    guard let own, own > Self.spared else { return }
    do throws(SystemCallError) { try writeControl(path, "\(Self.spared)") } catch {
      log(.info, "the kernel's OOM killer may choose the daemon: \(error)")
    }
  }
}
