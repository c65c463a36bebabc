import CLinux
import Glibc
import Linux

extension Probe {
  static let ofTheDaemon = [oomScore, memoryLock]

  /// The reason why no thread can be started, or nil. It is tried first, because the other probes
  /// need a thread.
  static func failureOfThreads() -> String? {
    var thread = pthread_t()
    let code = pthread_create(&thread, nil, { _ in nil }, nil)
    if code == 0 {
      pthread_join(thread, nil)
      return nil
    }
    return "pthread_create: \(errorText(code))"
  }

  private static let oomScore = Probe(
    id: "oom-score", name: "protecting the daemon from the OOM killer",
    lost: "When the kernel itself runs out of memory, it may kill the daemon first.",
    enable: "OOMScoreAdjust=-900 in its (system) unit, which workers don't inherit, or "
      + "CAP_SYS_RESOURCE."
  ) { _ in
    let path = "/proc/self/oom_score_adj"
    let text = try readText(path).prefix { $0 != "\n" }
    guard let current = Int(text) else { throw ProbeFailure("\(path) says `\(text)`") }
    // The daemon sets the same value.
    if current <= -900 { return .works("oom_score_adj is already \(current)") }
    try writeControl(path, "-900")
    // Any process may raise its own value.
    try writeControl(path, "\(current)")
    return .works("oom_score_adj can be lowered")
  }

  private static let memoryLock = Probe(
    id: "mlockall", name: "keeping the daemon in memory",
    lost: "Under memory pressure the kernel may drop the daemon's code from memory: it reacts some "
      + "10 ms later.",
    enable: "LimitMEMLOCK=infinity in its unit (ulimit -l unlimited), and for a user's unit also "
      + "in user@.service, whose limit a user's manager can't exceed; or CAP_IPC_LOCK."
  ) { _ in
    try shim("mlockall", on: "(MCL_ONFAULT)") { clinux_lock_memory() }
    munlockall()
    return .works("mlockall")
  }
}
