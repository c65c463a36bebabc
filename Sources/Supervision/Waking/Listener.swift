import Glibc
import Linux
import Policy

/// A socket that is opened for a worker and outlives its launches. A client that connects while the
/// worker is down or asleep waits in the kernel's queue.
public final class Listener: Sendable {
  public let socket: ListenSocket
  /// The socket blocks, because programs that get it by `LISTEN_FDS` expect that. The daemon only
  /// checks whether a client waits.
  public let descriptor: Descriptor
  /// The device and inode of a Unix socket's file.
  private let file: [UInt64]?
  /// The user with whose rights the file was made, if that isn't the daemon's user. That user may
  /// replace the directory.
  private let maker: Account?

  private init(_ socket: ListenSocket, _ descriptor: Descriptor, madeBy maker: Account?) {
    self.socket = socket
    self.descriptor = descriptor
    self.maker = maker
    file = socket.filePath.flatMap(Self.identity)
  }

  /// The number of connections that may wait to be accepted. The kernel lowers it to its limit
  /// (net.core.somaxconn).
  private static let backlog: Int32 = 4096

  /// - Parameters:
  ///   - account: the user that uses the socket, if that isn't the daemon's. A Unix socket's file
  ///     belongs to that user.
  ///   - isForGroup: whether the account's group may use the file, too.
  public static func open(
    _ socket: ListenSocket, for account: Account? = nil, isForGroup: Bool = false
  ) throws(ListenError) -> Listener {
    do throws(SystemCallError) {
      var maker: Account?
      let descriptor: Descriptor
      switch socket.address {
      case .tcp(let host, let port): descriptor = try internet(host, port: port, type: SOCK_STREAM)
      case .udp(let host, let port): descriptor = try internet(host, port: port, type: SOCK_DGRAM)
      case .unix(let path):
        (descriptor, maker) = try unix(path, account: account, mode: isForGroup ? 0o660 : 0o600)
      }
      if socket.isStream {
        try descriptor.listen(backlog: backlog)
      }
      return Listener(socket, descriptor, madeBy: maker)
    } catch {
      throw ListenError(address: socket.address, code: error.code)
    }
  }

  private static func internet(
    _ host: String, port: UInt16, type: __socket_type
  ) throws(SystemCallError) -> Descriptor {
    guard let address = InternetAddress(host, port) else {
      throw SystemCallError("bind", on: host, code: EINVAL)
    }
    let descriptor = try Descriptor.socket(family: address.family, type: type)
    // Connections of an earlier socket may still be closing. For datagrams the option would let two
    // sockets have the port.
    if type == SOCK_STREAM { descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, to: true) }
    // `::` also accepts IPv4, whatever the machine's default is.
    if address.family == AF_INET6 {
      descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_V6ONLY, to: false)
    }
    _ = try systemCall("bind") { address.withPointer { bind(descriptor.raw, $0, $1) } }
    return descriptor
  }

  // MARK: Unix sockets

  private static func unix(
    _ path: String, account: Account?, mode: mode_t
  ) throws(SystemCallError) -> (Descriptor, madeBy: Account?) {
    let bound = { () throws(SystemCallError) in
      try removeDeadSocket(path)
      let descriptor = try UnixSocket.free(path, mode: mode)
      try descriptor.setFlags(0)
      return descriptor
    }
    guard let account, !path.hasPrefix("@") else { return (try bound(), nil) }
    do throws(SystemCallError) {
      // The file belongs to the account from the beginning. Its user may do anything in the
      // directory, and may replace the file by a link while the daemon checks for a dead socket.
      return (try account.acting(bound), account)
    } catch {
      let isRefused = error.code == EACCES || error.code == EPERM || error.code == EADDRINUSE
      guard isRefused, DirectoryTrust.ofThisProcess.isSafe(directoryOf: path) else { throw error }
    }
    // This is a directory such as /run, in which only root can replace a file.
    let descriptor = try bound()
    let identity = account.identity
    try systemCall("chown", path: path) { lchown($0, identity.user, identity.group) }
    return (descriptor, nil)
  }

  /// Removes the socket file of a daemon that was killed. It removes no socket at which a process
  /// answers, and no other file.
  private static func removeDeadSocket(_ path: String) throws(SystemCallError) {
    guard !path.hasPrefix("@"), let status = linkStatus(of: path) else { return }
    guard status.isSocket else {
      throw SystemCallError("bind", on: path, code: EEXIST)
    }
    for kind in [UnixSocket.Kind.stream, .datagram] {
      do throws(SystemCallError) {
        _ = try UnixSocket.connected(to: path, kind)
      } catch {
        // EPROTOTYPE means that the socket has the other kind.
        if error.code == ECONNREFUSED || error.code == EPROTOTYPE { continue }
        if error.code == ENOENT { return }
      }
      throw SystemCallError("bind", on: path, code: EADDRINUSE)
    }
    try Linux.removeFile(path)
  }

  /// Removes the file of a socket that isn't needed any more. `deinit` doesn't, because a later
  /// daemon may continue to use it.
  public func removeFile() {
    guard let path = socket.filePath, let file else { return }
    // A dead socket file stays where root must not touch anything. The next daemon removes it with
    // its worker's rights.
    let trust = DirectoryTrust.ofThisProcess
    if maker == nil, trust.isStrict, !trust.isSafe(directoryOf: path, as: .shared) { return }
    let remove = { () throws(SystemCallError) in
      if Self.identity(path) == file { discardFile(path) }
    }
    do throws(SystemCallError) {
      if let maker { try maker.acting(remove) } else { try remove() }
    } catch {
      // The file stays in this case, too.
    }
  }

  private static func identity(_ path: String) -> [UInt64]? {
    guard let status = linkStatus(of: path), status.isSocket else { return nil }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }

  // MARK: after a daemon's death

  /// Finds the sockets of an earlier daemon that its worker still has open. A daemon that may not
  /// duplicate the worker's descriptors (pidfd_getfd(2)) finds none.
  public static func recover(_ wanted: [ListenSocket], from tree: ProcessTree) -> [Listener] {
    // An error means that the process has ended.
    recover(wanted, from: tree.pids) { try? Descriptor.pidfd(of: $0) }
  }

  /// Finds the sockets of an earlier daemon that was killed and can't end (`KilledProcesses`), in
  /// its remaining threads.
  public static func recover(
    _ wanted: [ListenSocket], fromThreads threads: [Int32]
  ) -> [Listener] {
    // An error means that the thread has ended, or that Linux is older than 6.9.
    recover(wanted, from: threads) { try? Descriptor.pidfd(ofThread: $0) }
  }

  private static func recover(
    _ wanted: [ListenSocket], from tasks: [Int32], by openPidfd: (Int32) -> Descriptor?
  ) -> [Listener] {
    var left = wanted
    var listeners: [Listener] = []
    for task in tasks where !left.isEmpty {
      guard let pidfd = openPidfd(task) else { continue }
      // A process that has ended has no descriptors.
      for open in (try? OpenDescriptor.list(of: task)) ?? [] where open.kind == .socket {
        // The descriptor was closed in the meantime.
        guard let duplicate = try? open.duplicate(from: pidfd),
          let facts = try? SocketFacts.read(duplicate),
          let index = left.firstIndex(where: { $0.isSeen(in: facts) })
        else { continue }
        listeners.append(Listener(left.remove(at: index), duplicate, madeBy: nil))
      }
    }
    return listeners
  }
}

extension ListenSocket {
  fileprivate var isStream: Bool {
    if case .udp = address { return false }
    return true
  }

  /// The path of a Unix socket that isn't abstract; nil for other sockets.
  public var filePath: String? {
    guard case .unix(let path) = address, !path.hasPrefix("@") else { return nil }
    return path
  }

  /// Whether the facts describe this socket.
  fileprivate func isSeen(in facts: SocketFacts) -> Bool {
    switch address {
    case .tcp(let host, let port):
      facts.isStream && facts.isListening && facts.local == Self.name(host, port)
    case .udp(let host, let port): !facts.isStream && facts.local == Self.name(host, port)
    case .unix(let path): facts.isListening && facts.local == .path(path)
    }
  }

  /// The name in the form in which the kernel writes the address.
  private static func name(_ host: String, _ port: UInt16) -> SocketName {
    InternetAddress(host, port)?.name ?? .internet(host: host, port: port)
  }
}

/// The reason why a worker's socket can't be opened.
public struct ListenError: Error, Hashable, Sendable, CustomStringConvertible {
  public var address: ListenSocket.Address
  /// The error number, as in errno(3).
  public var code: Int32
  /// The worker or program that has the address, if it is known.
  public var owner: String?

  public var description: String { "can't listen at \(address.text): \(reason)" }

  private var reason: String {
    switch code {
    case EADDRINUSE: "in use by \(owner ?? "another program")"
    case EADDRNOTAVAIL: "this machine has no such address"
    case EEXIST: "a file of that name exists and is not a socket"
    case EACCES:
      switch address {
      case .unix: "its directory is not writable"
      default: "ports below 1024 need root or CAP_NET_BIND_SERVICE"
      }
    default: errorText(code)
    }
  }
}
