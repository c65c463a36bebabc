import CLinux
import Control
import Glibc
import Linux

extension Probe {
  static let ofCgroups = [
    workerGroup, launchInGroup, freezer, oldFreezer, restProtection, accounting,
  ]

  private static let workerGroup = Probe(
    id: "cgroup", name: "a cgroup for each worker",
    lost: "Workers are suspended by SIGSTOP to all of their processes, which their parents can "
      + "see; a process that has left its worker's session and lost its parent is not found.",
    enable: "systemd-run --user -p Delegate=yes dormouse daemon; or a cgroup (version 2) that "
      + "belongs to you, named in DORMOUSE_CGROUP."
  ) { examination in
    .works("created and removed one in \(escaped(String(try examination.group.get().parentPath)))")
  }

  private static let launchInGroup = Probe(
    id: "clone-into-cgroup", name: "starting workers in their cgroup",
    lost: "Workers run without a cgroup of their own.",
    enable: "Linux 5.7 or later; where DORMOUSE_CGROUP is set, a group that has a parent with a "
      + "cgroup.procs you may write in common with the daemon's; in a container, a seccomp "
      + "profile that permits clone3."
  ) { examination in
    let group = try usable(examination)
    let child = try ProbeChild(ProbeChild.echo, cgroup: group)
    defer { child.end() }
    guard try group.processes().contains(child.pid) else {
      throw ProbeFailure("a child that was started in the group isn't in it")
    }
    return .works("clone3 with CLONE_INTO_CGROUP")
  }

  private static let freezer = Probe(
    id: "freezer", name: "freezing a worker",
    lost: "Workers are stopped by SIGSTOP instead, as without a cgroup.",
    enable: "Linux 5.2 or later, and a cgroup of version 2."
  ) { examination in
    let group = try usable(examination)
    let child = try ProbeChild(ProbeChild.echo, cgroup: group)
    defer { child.end() }
    try group.freeze(until: Deadline(in: .seconds(5)))
    try shim("pidfd_send_signal") {
      clinux_pidfd_send_signal(child.process.pidfd.raw, SIGCONT)
    }
    try child.send("ping")
    let silent = try child.line(within: .milliseconds(20)) == nil
    let frozen = try group.isFrozen
    try group.thaw(until: Deadline(in: .seconds(5)))
    guard silent, frozen else { throw ProbeFailure("a frozen child kept running") }
    guard try child.line() == "ping" else {
      throw ProbeFailure("a thawed child did not run")
    }
    examination.freezes = true
    return .works("froze and thawed a child; SIGCONT did not wake it while frozen")
  }

  private static let oldFreezer = Probe(
    id: "freezer-v1", name: "the freezer of cgroup version 1", need: .informational,
    lost:
      "Nothing: Dormouse doesn't use it. A process that it freezes can't be killed or traced "
      + "before it is thawed, so a daemon that dies would leave processes that can't be ended.",
    enable: "nothing to do; use a cgroup of version 2."
  ) { _ in
    .works(
      OldFreezer.mountPoint().map { "mounted at \(escaped($0)); not used" }
        ?? "none, and none is needed")
  }

  private static let accounting = Probe(
    id: "cgroup-account", name: "counting by worker",
    lost: "`status` shows less. Processor time is read from /proc, in "
      + "steps of 10 ms and without children that have ended.",
    enable:
      "a cgroup for each worker; for memory and tasks, a unit as the shipped ones are, which "
      + "leave no process beside the workers' groups (DelegateSubgroup= of systemd), and whose "
      + "cgroup.controllers names memory and pids."
  ) { examination in
    let account = try usable(examination).account()
    let counted: [(String, Bool)] = [
      ("processor time", account.cpuMicroseconds != nil), ("memory", account.memory != nil),
      ("tasks", account.tasks != nil), ("stalls", account.memoryStall != nil),
    ]
    let (there, missing) = (counted.filter(\.1).map(\.0), counted.filter { !$0.1 }.map(\.0))
    if there.isEmpty { throw ProbeFailure("the group counts nothing") }
    let counts = "counts " + there.joined(separator: ", ")
    return missing.isEmpty
      ? .works(counts) : .limited(counts + "; not " + missing.joined(separator: ", "))
  }

  /// This danger has no mechanism of its own to try.
  private static let restProtection = Probe(
    id: "rest-protection", name: "protection while hibernated",
    lost:
      "A hibernated worker is stopped and traced by the daemon, which its parent can see. If the "
      + "daemon is killed and another process sends SIGCONT, the worker's threads wait for the "
      + "next daemon.",
    enable: "a cgroup for each worker."
  ) { examination in
    examination.freezes
      ? .works("a hibernated worker stays frozen even if the daemon ends")
      : .limited("a hibernated worker rests stopped and traced while the daemon lives")
  }

  private static func usable(_ examination: Examination) throws -> WorkerCgroup {
    guard case .success(let probeGroup) = examination.group else {
      throw ProbeFailure("not tried: no cgroup")
    }
    return probeGroup.group
  }
}

/// A cgroup as a worker would have it, and its parent.
final class ProbeGroup {
  private let root: CgroupRoot
  let group: WorkerCgroup
  /// The path of the group in which this user may create groups.
  var parentPath: Substring { root.path[..<(root.path.lastIndex(of: "/") ?? root.path.endIndex)] }

  init() throws {
    root = try CgroupRoot.detect(name: "dormouse-doctor-\(getpid())")
    // Controllers are used only if the daemon or its manager has turned them on above.
    root.countMemoryAndTasks(includingAbove: false)
    do {
      group = try WorkerCgroup.create(in: root, name: "doctor")
    } catch {
      root.remove()
      throw error
    }
  }

  func end() {
    // If this fails, there is nothing that can be done about what the probes left.
    try? group.kill()
    try? group.remove(until: Deadline(in: .seconds(5)))
    root.remove()
  }
}
