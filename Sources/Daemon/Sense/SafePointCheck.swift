import Lifecycle
import Linux

extension Daemon {
  /// What speaks against freezing it now, beside what the engine knows. Between this look and the
  /// freeze a worker could take a lock; what has been idle for the whole grace seldom does.
  func checkSafePoint(_ id: WorkerID) {
    guard let process = workers[id]?.process else { return driver.send(.fileLocks(id, held: 0)) }
    let all = (root: process.identity, session: process.session, cgroup: process.cgroup)
    mechanics.submit(about: id.name) { [mailbox] in
      let tree = try? ProcessTree.discover(
        root: all.root, session: all.session, cgroup: all.cgroup)
      let held = FileLocks.held(by: tree?.pids ?? [])
      mailbox.post { $0.driver.send(.fileLocks(id, held: held)) }
    }
  }
}
