import Control
import CLinux
import Glibc
import Linux

extension Probe {
  static let ofTracing = [trace, traceNonDescendants, suspendSeccomp, missingPages]

  private static let missingPages = Probe(
    id: "userfaultfd", name: "lazy restore",
    lost: "Workers are restored in full before they run, which takes some milliseconds longer; "
      + "running workers are trimmed by swap only.",
    enable: "Without root: sudo systemctl enable --now dormouse-userfault.socket, and sudo adduser "
      + "NAME dormouse, which applies when all of the user's sessions have ended (or: sudo "
      + "systemctl restart user@UID). Otherwise run the daemon as root or with CAP_SYS_PTRACE. For "
      + "workers that root's daemon runs as other users: sysctl vm.unprivileged_userfaultfd=1. In "
      + "a container: a seccomp profile that permits userfaultfd."
  ) { _ in userfaultfdFinding }

  /// Whether this user may use userfaultfd in full, with the events for forks.
  static var userfaultfdFinding: Finding {
    let features = KernelFeatures.detect()
    if let obstacle = features.lazyObstacle { return .missing(obstacle) }
    if features.needsUserfaultService {
      return .works("this user has userfaultfd by the service at \(UserfaultService.path)")
    }
    let result = clinux_try_userfaultfd()
    if result == 0 { return .works("this user has userfaultfd(2)") }
    if result == 1 { return .works("this user may open /dev/userfaultfd") }
    return .missing(
      "userfaultfd: \(errorText(-result)); this user may not open /dev/userfaultfd")
  }

  private static let trace = Probe(
    id: "ptrace", name: "tracing a worker", need: .required,
    lost: "No worker can be hibernated: suspended workers keep their memory.",
    enable:
      "sysctl kernel.yama.ptrace_scope=1 (or 0) where it is 2 (3 lasts until reboot); in a "
      + "container --cap-add SYS_PTRACE, or a seccomp profile that permits ptrace."
  ) { examination in
    let child = try examination.child.get()
    let registers = try examination.seizing(child.pid) { session in
      session.threads.first?.registers.storedWords.count ?? 0
    }
    guard registers > 0 else { throw ProbeFailure("the kernel returned no registers") }
    guard try child.answers() else {
      throw ProbeFailure("a traced process did not continue afterwards")
    }
    examination.traces = true
    return .works("seized a child, interrupted it, read its \(registers) registers")
  }

  private static let traceNonDescendants = Probe(
    id: "ptrace-after-restart", name: "tracing after a restart",
    lost: "Programs that Dormouse hasn't started can't be hibernated or trimmed. Workers permit "
      + "tracing at their launch, and processes that they start themselves when they are "
      + "hibernated for the first time. A worker with other processes isn't hibernated by the next "
      + "daemon, nor suspended if these have sockets, until its restart.",
    enable:
      "sysctl kernel.yama.ptrace_scope=0; or run the daemon with CAP_SYS_PTRACE: as root, or in "
      + "a unit of the system's manager with User= and AmbientCapabilities=CAP_SYS_PTRACE. (A "
      + "user's own manager can't give that: its unit would fail with status 218.)"
  ) { examination in
    guard examination.traces else { throw ProbeFailure("not tried: tracing does not work") }
    let path = "/proc/sys/kernel/yama/ptrace_scope"
    // A kernel without Yama has no such file.
    let scope = (try? readText(path)).map { String($0.prefix { $0 != "\n" }) }
    let setting = scope.map { "Yama's ptrace_scope is \($0)" } ?? "no Yama in this kernel"
    do { try examination.seizeNonDescendant() } catch {
      return .limited(
        "\(setting): only descendants of this process can be traced, and processes that permit it")
    }
    return .works("\(setting): other processes can be traced, too")
  }

  private static let suspendSeccomp = Probe(
    id: "suspend-seccomp", name: "workers with seccomp filters",
    lost: "Workers that have a seccomp filter (browsers, sandboxed services) stay suspended "
      + "instead of hibernated.",
    enable: "CAP_SYS_ADMIN for the daemon, and a kernel with CONFIG_CHECKPOINT_RESTORE."
  ) { examination in
    guard examination.traces else { throw ProbeFailure("not tried: tracing does not work") }
    let child = try examination.child.get()
    try examination.seizing(child.pid) { session in
      for thread in session.threads {
        try shim("PTRACE_O_SUSPEND_SECCOMP", on: "thread \(thread.tid)") {
          clinux_ptrace_set_options(
            thread.tid, UInt64(CLINUX_TRACE_SYSGOOD) | UInt64(CLINUX_TRACE_SUSPEND_SECCOMP))
        }
      }
    }
    return .works("PTRACE_O_SUSPEND_SECCOMP")
  }
}

extension Examination {
  /// Traces a process whose parent isn't a descendant of this process, and opens its memory. The
  /// workers of an earlier daemon are such processes for a later one.
  fileprivate func seizeNonDescendant() throws {
    // A job in the background loses its standard input, so the input is passed as descriptor 3.
    let parent = try ProbeChild(
      "exec 3<&0; /bin/sh -c 'echo $$; read x' <&3 &\nread x; exit")
    defer { parent.end() }
    guard let pid = try parent.line().flatMap({ Int32($0) }) else {
      throw ProbeFailure("the shell did not start its job")
    }
    let stranger = try ProcessIdentity.current(of: pid)
    let pidfd = try stranger.openPidfd()
    defer {
      _ = clinux_pidfd_send_signal(pidfd.raw, SIGKILL)
      // The process isn't a child of this process: init reaps it.
      _ = try? pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(5)))
    }
    parent.end()  // The job is now an orphan, and a child of init or of a subreaper.
    try seizing(pid) { _ in }
    _ = try ProcessMemory(pid: pid)
  }
}
