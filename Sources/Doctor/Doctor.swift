import Control
import Glibc
import Linux

/// Finds out what this machine permits to this user, by trying it. A kernel's version doesn't show
/// what a container's filters, a security module or a limit permit.
///
/// It needs no daemon, and leaves no process, file or cgroup behind.
public enum Doctor {
  /// Examines the machine. A call takes about 1 s.
  ///
  /// - Parameters:
  ///   - stateDirectory: The daemon's state directory. It is created and removed if it doesn't
  ///     exist.
  ///   - socket: The path at which the daemon would listen.
  public static func examine(stateDirectory: String, socket: String) -> DoctorReport {
    // A signal such as SIGINT would leave processes behind, so it is delivered after the
    // examination.
    let before = SignalMask.blocking([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    defer { before.restore() }
    if let failure = Probe.failureOfThreads() { return reportWithoutThreads(failure) }
    let examination = Examination(stateDirectory: stateDirectory, socket: socket)
    defer { examination.end() }
    var checks = probes.map { $0.run(examination) }
    let trial = examination.tryHibernation()
    checks.append(trial.check)
    return report(checks, outcome: trial.outcome, verdict: verdict(checks, trial.outcome))
  }

  private static func report(
    _ checks: [DoctorCheck], outcome: HibernationTrial.Outcome?, verdict: CodedText
  ) -> DoctorReport {
    DoctorReport(
      version: Dormouse.version, kernel: kernelRelease, user: geteuid(), checks: checks,
      trial: outcome, verdict: verdict)
  }

  /// Returns the report for a machine without threads, on which no other probe can be tried.
  private static func reportWithoutThreads(_ reason: String) -> DoctorReport {
    let check = DoctorCheck(
      id: "threads", name: "threads", need: .required, result: .missing, found: reason,
      lost: "Dormouse doesn't run.",
      enable: "more processes for this user (ulimit -u, TasksMax in its unit); in a container, a "
        + "seccomp profile that permits clone3, or answers it with ENOSYS.")
    return report(
      [check], outcome: nil,
      verdict: CodedText(
        "daemon_does_not_start", "Dormouse doesn't run here: it can't start a thread."))
  }

  /// The probes in the order of the table.
  static let probes: [Probe] =
    Probe.ofProcesses + Probe.ofTracing + Probe.ofMemory + Probe.ofCgroups + Probe.ofWaking
    + Probe.ofPressure + Probe.ofTrim
    + Probe.ofTheDaemon + Probe.ofStorage

  private static func verdict(
    _ checks: [DoctorCheck], _ outcome: HibernationTrial.Outcome?
  ) -> CodedText {
    // Without these mechanisms the daemon doesn't start.
    let absent = checks.filter {
      ["pidfd", "state-directory", "control-socket"].contains($0.id) && $0.result == .missing
    }
    let daemon =
      absent.isEmpty
      ? "" : " The daemon doesn't start without \(absent.map(\.name).joined(separator: ", "))."
    guard let outcome else {
      // A worker that nothing would wake isn't suspended (`SuspendJob`).
      let isWatched = checks.contains { $0.id == "wake" && $0.result != .missing }
      let consequence =
        isWatched
        ? " Workers are still launched, suspended, woken and terminated."
        : " Workers are still launched and terminated; those with sockets or pipes may not be "
          + "suspended."
      return CodedText(
        daemon.isEmpty ? "hibernation_missing" : "daemon_does_not_start",
        "Hibernation doesn't work here." + (daemon.isEmpty ? consequence : daemon))
    }
    let text =
      "Hibernation works here: a shell freed "
      + "\(sizeText(Int64(clamping: outcome.movedBytes))) in "
      + "\(durationText(outcome.hibernateSeconds)) and was resumed in "
      + "\(durationText(outcome.resumeSeconds)).\(daemon)"
    return CodedText(daemon.isEmpty ? "hibernation_works" : "daemon_does_not_start", text)
  }

  private static var kernelRelease: String {
    // The release is only for the report's head, so an unreadable file doesn't matter.
    let text = (try? readText("/proc/sys/kernel/osrelease")) ?? "unknown"
    return String(text.prefix { $0 != "\n" })
  }
}
