import Glibc
import Linux
import Supervision

/// Opens the sockets again that a worker of an earlier daemon uses.
struct SurvivorChannels {
  let record: WorkerRecord
  /// The worker may store some (`FDSTORE=1`).
  let takesDescriptors: Bool
  let log: DaemonLog

  /// Abstract names too: the worker knows no other name.
  func open() -> WorkerChannels {
    var channels = WorkerChannels()
    channels.notify = reopen(record.notifySocket) { path throws(SystemCallError) in
      try NotifySocket(path: path, takesDescriptors: takesDescriptors)
    }
    channels.pressure = reopen(record.pressureWatch) { path throws(SystemCallError) in
      try PressureWatch(path: path)
    }
    channels.talk = reopen(record.workerSocket) { path throws(SystemCallError) in
      try WorkerSocket(path: path)
    }
    return channels
  }

  /// Without a channel the worker can't report anything, and that is no reason to lose it. A program that
  /// removes old files (in /tmp, say) may have removed the directory.
  private func reopen<Socket>(
    _ path: String?, _ open: (String) throws(SystemCallError) -> Socket
  ) -> Socket? {
    guard let path else { return nil }
    do {
      guard let slash = path.lastIndex(of: "/"), !path.hasPrefix("@") else { return try open(path) }
      let directory = try openTrusted(String(path[..<slash]), making: true, as: .shared)
      let file = String(path[path.index(after: slash)...])
      // Its user's, where it runs as another. One that isn't there has no owner to restore.
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
