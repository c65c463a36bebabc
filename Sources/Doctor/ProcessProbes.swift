import Control
import CLinux
import Glibc
import Linux

extension Probe {
  static let ofProcesses = [pidfd, release, compare]

  private static let pidfd = Probe(
    id: "pidfd", name: "process descriptors", need: .required,
    lost:
      "A process can't be distinguished from a later one with the same number: Dormouse doesn't "
      + "run.",
    enable: "Linux 5.3 or later; in a container, a seccomp profile that permits pidfd_open and "
      + "pidfd_send_signal."
  ) { examination in
    let child = try examination.child.get()
    let pidfd = try Descriptor.pidfd(of: child.pid)
    try shim("pidfd_send_signal", on: "pid \(child.pid)") {
      clinux_pidfd_send_signal(pidfd.raw, 0)
    }
    return .works("pidfd_open and pidfd_send_signal")
  }

  private static let release = Probe(
    id: "process-mrelease", name: "freeing memory at a kill",
    lost: "The memory of a killed worker is freed when its last thread has ended, not "
      + "at once.",
    enable: "Linux 5.15 or later; in a container, a seccomp profile that permits process_mrelease."
  ) { _ in
    let child = try ProbeChild(ProbeChild.echo)
    defer { child.end() }
    try shim("pidfd_send_signal", on: "pid \(child.pid)") {
      clinux_pidfd_send_signal(child.process.pidfd.raw, SIGKILL)
    }
    let result = clinux_process_mrelease(child.process.pidfd.raw)
    // ESRCH: the process had ended already, and its memory was freed.
    guard result >= 0 || result == -ESRCH else {
      throw SystemCallError("process_mrelease", on: "pid \(child.pid)", code: -result)
    }
    return .works("process_mrelease")
  }

  private static let compare = Probe(
    id: "kcmp", name: "detecting shared address spaces",
    lost:
      "Processes of a worker are distinguished by comparing their memory, which is slower. A child "
      + "that is unchanged since its fork may be taken for one that shares its parent's memory; "
      + "its worker isn't hibernated.",
    enable: "a kernel with CONFIG_KCMP; in a container, a seccomp profile that permits kcmp."
  ) { examination in
    let child = try examination.child.get()
    try shim("kcmp", on: "pid \(child.pid)") { clinux_share_memory(child.pid, getpid()) }
    return .works("kcmp distinguishes them")
  }
}
