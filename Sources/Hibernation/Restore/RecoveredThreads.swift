import CLinux
import Glibc
import Linux

extension Hibernator {
  /// Returns the worker's processes. While it slept without a daemon, its service manager may have
  /// started programs in its cgroup (`ExecStop=`, `ExecReload=`), and waits for them. They aren't
  /// the worker's, and aren't stopped.
  func discoverWithoutManagerJobs(
    _ target: HibernationTarget, _ image: ImageReader
  ) throws(SystemCallError) -> ProcessTree {
    let tree = try ProcessTree.discover(
      root: target.root, session: target.session, cgroup: target.cgroup)
    guard target.cgroup?.isExternal == true,
      let jobs = ManagerJobs(
        root: target.root, tree: tree, members: Set(image.processes.map(\.identity)))
    else { return tree }
    return jobs.absent(from: tree)
  }
}

extension TracedThread {
  init?(_ stored: ImageProcess.TracedThreadState) {
    guard let registers = clinux_registers(storedWords: stored.registers) else { return nil }
    self.init(
      tid: stored.tid, registers: registers, signalMask: stored.signalMask,
      isWaiting: stored.isWaiting)
  }
}
