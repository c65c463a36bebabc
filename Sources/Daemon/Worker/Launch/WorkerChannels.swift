import Checksum
import Glibc
import Linux
import Supervision
import Synchronization

/// The sockets between a worker and the daemon. A socket that can't be offered is nil, and the
/// worker runs without it.
struct WorkerChannels {
  var notify: NotifySocket?
  var pressure: PressureWatch?
  var talk: WorkerSocket?
}

/// Describes the channels of a worker, and opens them. That is done on another thread, because
/// their directory may be on a busy disk.
struct ChannelPlan: Sendable {
  /// The name of the worker.
  let name: String
  /// The directory of the sockets. It is created if it doesn't exist.
  let directory: String
  /// A directory below /run, for a daemon that runs as root: other users can't pass through root's
  /// own runtime directory.
  let publicDirectory: String
  let hasNotifySocket: Bool
  /// Whether the worker may store descriptors (`FDSTORE=1`).
  let acceptsDescriptors: Bool
  /// The user of the worker; nil: the daemon's user.
  let account: Account?

  struct Remark: Sendable {
    let level: DaemonLog.Priority
    let text: String
  }

  /// The open sockets, to be passed to the loop's thread, and messages about those that couldn't be
  /// opened.
  final class Made: Sendable {
    private let channels: Mutex<WorkerChannels?>
    let remarks: [Remark]

    fileprivate init(_ channels: sending WorkerChannels, _ remarks: [Remark]) {
      self.channels = Mutex(channels)
      self.remarks = remarks
    }

    /// Returns the sockets; nil: an earlier call has returned them.
    func claim() -> sending WorkerChannels? { channels.withLock { $0.take() } }
  }

  /// Opens the channels so that a worker of another user can reach them: then the sockets belong to
  /// that user, in a directory that all users may pass through, but only the daemon's user may
  /// list.
  func open() throws -> Made {
    var remarks: [Remark] = []
    let handle = try openTrusted(directory, making: true, as: .exclusive)
    if account != nil {
      do throws(SystemCallError) { try handle.setMode(0o711) } catch {
        remarks.append(Remark(level: .warning, text: "\(error)"))
      }
    }
    var notify = hasNotifySocket ? try createNotify(in: directory, handle) : nil
    if hasNotifySocket, notify == nil { notify = openPublicNotify(&remarks) }
    let pressure = offer("MEMORY_PRESSURE_WATCH", &remarks) { () throws(SystemCallError) in
      try PressureWatch(path: path("pressure"))
    }
    let talk = offer("DORMOUSE_WORKER_SOCKET", &remarks) { () throws(SystemCallError) in
      try WorkerSocket(path: path("worker"))
    }
    let paths = [pressure?.path, talk?.path].compactMap(\.self)
    let isReachable = paths.allSatisfy { give($0, in: handle) }
    if !isReachable {
      for path in paths { discardFile(path) }
      remarks.append(Remark(level: .notice, text: unreachable))
    }
    return Made(
      WorkerChannels(
        notify: notify, pressure: isReachable ? pressure : nil, talk: isReachable ? talk : nil),
      remarks)
  }

  private var unreachable: String {
    "no MEMORY_PRESSURE_WATCH and no DORMOUSE_WORKER_SOCKET: "
      + "user \(account?.identity.user ?? geteuid()) can't enter \(directory); "
      + "`chmod o+x` its parent directories, or choose another --socket"
  }

  /// All paths at which the sockets may be.
  var paths: [String] {
    [path("notify"), path("pressure"), path("worker"), path("notify", in: publicDirectory)]
  }

  private func path(_ kind: String, in directory: String? = nil) -> String {
    "\(directory ?? self.directory)/\(CgroupRoot.sanitised(name)).\(kind)"
  }

  private func offer<Socket>(
    _ variable: String, _ remarks: inout [Remark], _ open: () throws(SystemCallError) -> Socket
  ) -> Socket? {
    do throws(SystemCallError) { return try open() } catch {
      remarks.append(Remark(level: .warning, text: "can't offer \(variable): \(error)"))
      return nil
    }
  }

  /// Creates the socket in a directory; nil: the worker's user can't reach it there.
  private func createNotify(
    in directory: String, _ handle: DirectoryHandle
  ) throws(SystemCallError) -> NotifySocket? {
    let socket = try NotifySocket.create(
      in: directory, name: name, acceptsDescriptors: acceptsDescriptors)
    if socket.path.hasPrefix("@") || give(socket.path, in: handle) { return socket }
    socket.remove()
    return nil
  }

  /// Opens the socket in a directory of its own below /run, which no other user's directory
  /// permissions block. Only the worker's user can send to it. The last resort is an abstract name,
  /// to which every user can send.
  private func openPublicNotify(_ remarks: inout [Remark]) -> NotifySocket? {
    do {
      let handle = try openTrusted(publicDirectory, making: true, as: .exclusive)
      try handle.setMode(0o711)
      if let socket = try createNotify(in: publicDirectory, handle) { return socket }
    } catch {
      remarks.append(Remark(level: .info, text: "NOTIFY_SOCKET has an abstract name: \(error)"))
    }
    let random = String(UInt64.random(in: .min ... .max), radix: 16)
    return offer("NOTIFY_SOCKET", &remarks) { () throws(SystemCallError) in
      try NotifySocket(path: "@dormouse-\(random).notify", acceptsDescriptors: acceptsDescriptors)
    }
  }

  /// Gives the socket to the worker's user. Returns false if that user can't reach it.
  private func give(_ path: String, in directory: DirectoryHandle) -> Bool {
    guard let account else { return true }
    let name = String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...])
    do throws(SystemCallError) {
      try directory.setOwner(
        of: name, user: account.identity.user, group: account.identity.group)
      try account.acting { () throws(SystemCallError) in
        _ = try readStatus(of: path)
      }
      return true
    } catch { return false }
  }

  // MARK: paths

  /// The directory is beside the control socket, because the paths of sockets must be short. It is
  /// named after the control socket, because another daemon's socket may be in the same directory.
  static func directory(of controlSocket: String) -> String { controlSocket + ".workers" }

  /// The name differs for each control socket.
  static func publicDirectory(of controlSocket: String) -> String {
    "/run/dormouse-channels-"
      + String(CRC32.castagnoli.checksum(of: controlSocket.utf8), radix: 16)
  }
}
