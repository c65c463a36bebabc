import Glibc
import Linux
import Supervision

/// Opens the sockets again that a worker of an earlier daemon uses.
struct SurvivorChannels {
  let record: WorkerRecord
  /// Whether the worker may store descriptors (`FDSTORE=1`).
  let acceptsDescriptors: Bool
  let log: DaemonLog

  /// Opens the sockets at their recorded names, abstract names too: the worker knows no other.
  func open() -> WorkerChannels {
    var channels = WorkerChannels()
    channels.notify = reopen(record.notifySocket) { path throws(SystemCallError) in
      try NotifySocket(path: path, acceptsDescriptors: acceptsDescriptors)
    }
    channels.pressure = reopen(record.pressureWatch) { path throws(SystemCallError) in
      try PressureWatch(path: path)
    }
    channels.talk = reopen(record.workerSocket) { path throws(SystemCallError) in
      try WorkerSocket(path: path)
    }
    return channels
  }

  /// Opens a socket again. If that fails, the worker is adopted without the channel: it can't
  /// report anything then, and that is no reason to lose it. A program that removes old files (in
  /// /tmp, say) may have removed the directory.
  private func reopen<Socket>(
    _ path: String?, _ open: (String) throws(SystemCallError) -> Socket
  ) -> Socket? {
    guard let path else { return nil }
    do {
      guard let slash = path.lastIndex(of: "/"), !path.hasPrefix("@") else { return try open(path) }
      let directory = try openTrusted(String(path[..<slash]), making: true, as: .shared)
      let file = String(path[path.index(after: slash)...])
      // If the worker runs as another user, the socket belongs to that user. A socket that doesn't
      // exist has no owner to restore.
      let before = try? directory.status(of: file)
      let socket = try open(path)
      if let before, before.st_uid != geteuid() {
        try directory.setOwner(of: file, user: before.st_uid, group: before.st_gid)
      }
      return socket
    } catch {
      log(.warning, "\(record.name): adopted without its channels to the daemon: \(error)")
      return nil
    }
  }
}
