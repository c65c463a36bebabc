import CLinux
import Glibc
import Linux

/// The package's service for userfaultfd, which `UserfaultService` asks. It runs as root with
/// CAP_SYS_PTRACE for the users that may connect to its socket (SECURITY.md says why that is safe).
///
/// It trusts no client. Each connection is served by a child process, because a client can make any
/// process wait that has received a descriptor: closing the last one of a socket with SO_LINGER, or
/// each one of a FUSE file, may take without limit. A child ends after `connectionTimeout`. The
/// service itself never receives a descriptor, and never reads from a userfaultfd.
public struct UserfaultServer {
  private static let maxConnections = 32
  private static let maxConnectionsOfUser = 4
  private static let connectionTimeout: UInt32 = 2  // seconds
  /// The number that no user has. It stands for all users of other user namespaces: there, one user
  /// may have 65,536 numbers, and would use up the connections of all others.
  private static let strangers = uid_t.max

  private let listener: Descriptor
  private let idleTime: Duration?
  /// The users whose connections the child processes serve.
  private var children: [pid_t: uid_t] = [:]

  /// Serves connections until none has come for a time. Call it only in a process with one thread.
  ///
  /// - Parameters:
  ///   - listener: a listening socket of packets.
  ///   - idleTime: how long to wait for a connection; nil: without limit.
  /// - Throws: an error if the socket can't be waited for.
  public static func run(_ listener: Descriptor, idleTime: Duration?) throws(SystemCallError) {
    signal(SIGPIPE, SIG_IGN)
    try listener.setFlags(O_NONBLOCK)
    var server = UserfaultServer(listener: listener, idleTime: idleTime)
    while try server.serveNext() {}
  }

  private init(listener: Descriptor, idleTime: Duration?) {
    (self.listener, self.idleTime) = (listener, idleTime)
  }

  /// Returns false if nothing has come for the idle time.
  private mutating func serveNext() throws(SystemCallError) -> Bool {
    children = children.filter { !reapIfEnded($0.key) }
    guard children.count < Self.maxConnections else {
      pauseThread(for: .milliseconds(10))
      return true
    }
    // Children that have ended are reaped soon.
    let wait = children.isEmpty ? idleTime ?? .seconds(3600) : .milliseconds(100)
    guard try pollDescriptor(listener.raw, for: POLLIN, until: Deadline(in: wait)) else {
      return !children.isEmpty || idleTime == nil
    }
    let raw = clinux_accept(listener.raw)
    guard raw >= 0 else {
      // The process has no free descriptor, or the client has disconnected.
      pauseThread(for: .milliseconds(10))
      return true
    }
    serve(raw)
    return true
  }

  private mutating func serve(_ raw: Int32) {
    // Without credentials the connection is refused.
    let credentials = try? PeerCredentials(of: raw)
    children = children.filter { !reapIfEnded($0.key) }
    let user = credentials.map { peer in
      UserNamespace.isShared(with: peer.process) ? peer.user : Self.strangers
    }
    guard let peer = credentials, let user,
      children.values.count(where: { $0 == user }) < Self.maxConnectionsOfUser
    else {
      // Another thread closes it.
      return UserfaultConnection.send(.refused(.busy), to: Descriptor(foreign: raw))
    }
    do throws(SystemCallError) {
      // The child waits for the end of this pipe, so that it closes the last descriptor of the
      // connection, and with it those that wait to be received.
      let pipe = try Descriptor.pipe()
      let child = try shim("fork") { clinux_fork() }
      if child == 0 { Self.serveInChild(raw, of: peer.process, parent: pipe) }
      children[child] = user
      close(raw)
      withExtendedLifetime(pipe) {}
    } catch { Closer.shared.close(raw) }
  }

  private static func serveInChild(
    _ raw: Int32, of peer: pid_t, parent: (reading: Descriptor, writing: Descriptor)
  ) -> Never {
    // SIGALRM ends the child.
    alarm(connectionTimeout)
    close(parent.writing.raw)
    // At an error the parent has ended, too.
    _ = try? parent.reading.read(upTo: 1)
    UserfaultConnection(socket: Descriptor(foreign: raw), peer: peer).answer()
    // The received descriptors are closed by the end of the process, which may wait for them.
    _exit(0)
  }
}

/// One connection to the service: one request, and its answer.
struct UserfaultConnection {
  let socket: Descriptor
  /// The process that has connected, by SO_PEERCRED.
  let peer: pid_t

  private static let device = "/dev/userfaultfd"

  /// Waits for the request and answers it.
  func answer() {
    do throws(SystemCallError) {
      var received: [UInt8] = []
      while true {
        try pollDescriptor(socket.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
        let reception = try Reception.receive(
          from: socket, UserfaultReply.maxLength, &received)
        guard let reception else { continue }
        let request = UserfaultRequest(rawValue: String(decoding: received, as: UTF8.self))
        let (reply, device) = perform(request, passed: reception.passed)
        Self.send(reply, passing: device, to: socket)
        // They aren't closed before the answer is sent.
        return withExtendedLifetime(reception) {}
      }
    } catch {
      // The client has disconnected, or gets no answer, and says so.
      writeToStandardError(Array("userfault-service: process \(peer): \(error)\n".utf8))
    }
  }

  private func perform(
    _ request: UserfaultRequest?, passed: [Descriptor]
  ) -> (UserfaultReply, device: Descriptor?) {
    guard let request, passed.count == (request == .device ? 0 : 1) else {
      return (.refused(.request), nil)
    }
    guard sharesNamespace else { return (.refused(.namespace), nil) }
    guard let userfault = passed.first else { return openDevice() }
    guard Userfault.isUserfault(userfault.raw) else { return (.refused(.descriptor), nil) }
    let result = clinux_uffd_negotiate(userfault.raw, request == .negotiateTracking ? 1 : 0)
    return (result < 0 ? .failed(-result) : .done, nil)
  }

  private func openDevice() -> (UserfaultReply, device: Descriptor?) {
    do throws(SystemCallError) {
      return (.done, try Descriptor.open(Self.device, O_RDWR))
    } catch { return (.failed(error.code), nil) }
  }

  /// Whether the peer is in the user namespace of the service, which is the machine's. The pidfd of
  /// the connection shows that the process with that number is still the peer (Linux 6.5).
  private var sharesNamespace: Bool {
    let pidfd = clinux_peer_pidfd(socket.raw)
    defer { if pidfd >= 0 { close(pidfd) } }
    guard UserNamespace.isShared(with: peer) else { return false }
    // A pidfd becomes readable when its process ends.
    return pidfd < 0 ? pidfd == -ENOPROTOOPT : Descriptor.inputEvents(of: pidfd) == 0
  }

  /// Sends an answer without waiting. A client that doesn't read gets none.
  static func send(
    _ reply: UserfaultReply, passing device: Descriptor? = nil, to socket: Descriptor
  ) {
    let bytes = Array(reply.text.utf8)
    if let device {
      _ = clinux_send_with_descriptor(socket.raw, bytes, Int64(bytes.count), device.raw)
    } else {
      _ = socket.send(bytes, waits: false)
    }
  }
}
