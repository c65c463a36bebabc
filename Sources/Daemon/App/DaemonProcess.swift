import CLinux
import Glibc
import Linux

/// Settings of the daemon's own process at its start.
enum DaemonProcess {
  /// Protects the daemon: it must be able to act when no memory is free, and the kernel's OOM
  /// killer must not choose it.
  static func protect(_ log: DaemonLog) {
    if clinux_become_subreaper() < 0 {
      log(.warning, "can't adopt orphaned processes of workers (PR_SET_CHILD_SUBREAPER)")
    }
    clinux_stay_out_of_core_files()
    // A worker costs ten descriptors or more, and the usual limit is 1024.
    clinux_raise_descriptor_limit()
    SelfMemory.lock()
    let score = DaemonOOMScore()
    score.useForWorkers()
    score.lower { log($0, $1) }
    ignoreWriteSignals()
  }

  /// - Parameter tracking: `off` switches write tracking off, for measuring its effect and for
  ///   tests without it.
  static func kernelFeatures(
    _ detected: KernelFeatures = .detect(),
    tracking: String? = getenv("DORMOUSE_TRACKING").map { String(cString: $0) }
  ) -> KernelFeatures {
    var features = detected
    if tracking == "off" { features.writeTracking = false }
    return features
  }

  /// Ignores SIGPIPE and SIGXFSZ. Then a broken pipe, or a limit on the size of files
  /// (setrlimit(2)), makes write(2) fail and doesn't end the daemon.
  static func ignoreWriteSignals() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
  }
}

/// The `oom_score_adj` of this process and of those that it starts.
struct DaemonOOMScore {
  /// The file with the value. Tests use another file.
  var path = "/proc/self/oom_score_adj"

  private static let spared: Int32 = -900

  /// The value of this process; nil: it can't be read. Without /proc, no value could be inherited
  /// that could be seen or changed.
  private var current: Int32? { (try? readText(path)).flatMap { Int32($0.prefix { $0 != "\n" }) } }

  /// The value for workers, if that of the daemon is known. No worker gets a protected value, even
  /// if the daemon was started with one (`OOMScoreAdjust=` in its unit).
  var ofWorkers: Int32? { current.map { OOMScore.ofWorkers(daemon: $0) } }

  /// From now on, programs are started with the value for workers. Call this before `lower`, which
  /// lowers the value of this process.
  func useForWorkers() {
    if let ofWorkers { clinux_set_spawn_oom_score(ofWorkers) }
  }

  /// Lowers the value of the daemon if that is permitted.
  func lower(_ log: (DaemonLog.Priority, String) -> Void) {
    guard let current, current > Self.spared else { return }
    do throws(SystemCallError) { try writeControl(path, "\(Self.spared)") } catch {
      log(.info, "the kernel's OOM killer may choose the daemon: \(error)")
    }
  }
}

/// The service manager that started the daemon, if there is one (sd_notify(3)). With `Type=notify`
/// in the daemon's unit, systemd knows when the daemon manages its workers.
enum ServiceManager {
  /// - Parameter socket: the path of the manager's socket; nil or empty: no service manager waits
  ///   for a message.
  static func send(
    _ message: String, to socket: String? = getenv("NOTIFY_SOCKET").map { String(cString: $0) }
  ) {
    guard let socket, !socket.isEmpty,
      // The daemon runs without a service manager that can't be reached.
      let connection = try? UnixSocket.connected(to: socket, .datagram)
    else { return }
    // Nor is a manager needed that has ended meanwhile.
    try? connection.writeAll(message)
  }
}
