import Lifecycle
import Linux

/// What `ListeningSockets` gets of the daemon.
final class ListeningOfDaemon: ListeningHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var isClosing: Bool { daemon.isEnding || daemon.isLeaving }
  func hasProcess(_ id: WorkerID) -> Bool { daemon.workers[id]?.process != nil }
  func isLaunching(_ id: WorkerID) -> Bool { daemon.launcher.isLaunching(id) }
  func processes(of id: WorkerID) -> ProcessTree? {
    // What has ended, or can't be read, has no sockets to take back.
    try? daemon.workers[id]?.process?.tree()
  }
  func start(_ id: WorkerID) { daemon.declared.startAutomatically(id, .start, .connection) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}

extension ListeningSockets {
  convenience init(_ daemon: Daemon) {
    let services = daemon.services
    self.init(
      services.loop, services.loop, services.jobs, services.socketFiles, daemon.driver,
      daemon.workers, ListeningOfDaemon(daemon))
  }
}
