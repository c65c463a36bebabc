import CLinux
import Control
import Glibc
import JSONLines
import Linux

/// Listens for clients: one JSON object a line, each request answered once, when the thing has
/// happened. Belongs to the loop's thread; no other client waits for a slow or hostile one. What it may
/// cost is limited: see `maxUnread` for when its requests are no longer read, and `maxPending` for the
/// answers after which it is dropped (a single answer may still be longer).
final class ControlServer {
  private let path: String
  private let listener: Descriptor
  private var listening: EventLoop.Token?
  unowned let daemon: Daemon
  private var clients: [Int32: Client] = [:]
  /// Given up for a moment when there are no descriptors left: see `refuse`.
  private var spare: Descriptor?
  /// Clients who asked for the daemon's end, and hear of it.
  private var waitingForEnd: [(client: Client, id: UInt64)] = []

  private var quota = ClientQuota()
  /// Bytes of answers that may wait for a client that doesn't read, before it is dropped. Only
  /// answers to what it asked before it was full can still come.
  static let maxPending = 8 << 20
  /// From so many bytes on nothing more is read from it.
  static let maxUnread = 256 << 10
  /// Requests of one client that are handled before it is the others' turn.
  static let maxAtOnce = 16

  final class Client {
    let descriptor: Descriptor
    var token: EventLoop.Token?
    var framer = LineFramer()
    var pending: [UInt8] = []
    var isClosed = false
    /// More of its requests are due.
    var isWaiting = false
    /// Events that it wasn't told, because it didn't read those before.
    var lostEvents = 0
    /// The request by which it follows.
    var followedAs: UInt64 = 0
    var isFull: Bool { pending.count > ControlServer.maxUnread }

    init(_ descriptor: Descriptor) { self.descriptor = descriptor }
  }

  init(path: String, daemon: Daemon) throws(StartError) {
    self.path = path
    self.daemon = daemon
    let directory = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    do throws(StartError) {
      _ = try openTrusted(directory, making: true, as: .shared)
    } catch {
      if case .directory(let failure) = error { throw .socket(path: path, failure.description) }
      throw error
    }
    // Somebody who answers here has another state directory, or the lock would have told.
    if (try? UnixSocket.connected(to: path, .stream)) != nil { throw .inUse(path: path) }
    do throws(SystemCallError) {
      // 0600 from its first moment on.
      let mask = umask(0o177)
      defer { umask(mask) }
      listener = try UnixSocket.bound(to: path, .stream)
      UnixSocket.refuseDescriptors(listener)
      let raw = listener.raw
      _ = try systemCall("listen", on: path) { listen(raw, 64) }
    } catch { throw .socket(path: path, error.reason) }
    spare = try? Descriptor.open("/dev/null")
    do throws(SystemCallError) {
      listening = try daemon.loop.watch(listener, .readable) { [unowned self] _ in accept() }
    } catch { throw .system(error) }
    dropOverdue()
  }

  static func check(path: String) throws(StartError) {
    guard path.utf8.count > UnixSocket.maxPath else { return }
    throw .socket(
      path: path,
      "the path has \(path.utf8.count) bytes, and the kernel takes \(UnixSocket.maxPath) at "
        + "most; choose a shorter one with --socket or DORMOUSE_CONTROL_SOCKET")
  }

  func close() {
    unlink(path)
    for client in clients.values { flush(client) }
  }

  private func accept() {
    // The others wait in the kernel's queue until a client goes.
    for _ in 0..<Self.maxAtOnce {
      guard !quota.isFull else { return setListening([]) }
      let raw = clinux_accept(listener.raw)
      if raw == -EMFILE || raw == -ENFILE { return refuse() }
      if raw == -ECONNABORTED || raw == -EINTR { continue }
      if raw < 0 { return raw == -EAGAIN ? () : pause(why: -raw) }
      let descriptor = Descriptor(foreign: raw)
      guard let user = trustedUser(of: descriptor) else { continue }
      switch quota.admit(raw, user: user, at: EventLoop.now) {
      case .admitted: break
      case .insteadOf(let other): if let client = clients[other] { drop(client) }
      case .refused: continue
      }
      let client = Client(descriptor)
      client.token = try? daemon.loop.watch(descriptor, .readable) { [unowned self] what in
        serve(client, what)
      }
      if client.token != nil { clients[raw] = client } else { quota.remove(raw) }
    }
  }

  /// Regularly: half-open connections have had their time.
  private func dropOverdue() {
    for id in quota.overdue(at: EventLoop.now) {
      if let client = clients[id] { drop(client) }
    }
    daemon.loop.after(.seconds(5)) { [weak self] in self?.dropOverdue() }
  }

  /// Without descriptors nobody can be let in; but whoever waits would keep the listener readable,
  /// and the loop busy. So they are shown out, one a turn.
  private func refuse() {
    daemon.log(.warning, "out of descriptors (RLIMIT_NOFILE): a client is turned away")
    spare = nil
    let raw = clinux_accept(listener.raw)
    if raw >= 0 { Closer.close(raw) }
    takeSpare()
    guard spare == nil else { return }
    // Another thread is still closing that client's: the last close of a socket may wait.
    setListening([])
    daemon.loop.after(.milliseconds(20)) { [weak self] in
      self?.takeSpare()
      self?.setListening(.readable)
    }
  }

  private func takeSpare() {
    // Where there is none left, the next client finds that out.
    if spare == nil { spare = try? Descriptor.open("/dev/null") }
  }

  /// Out of memory, the listener stays readable without anything that could be done.
  private func pause(why code: Int32) {
    daemon.log(.warning, "clients have to wait a second: \(String(cString: strerror(code)))")
    setListening([])
    daemon.loop.after(.seconds(1)) { [weak self] in self?.setListening(.readable) }
  }

  private func setListening(_ interest: Epoll.Interest) {
    guard let listening else { return }
    try? daemon.loop.change(listener, listening, to: interest)
  }

  /// Only the daemon's own user and root may give orders (SO_PEERCRED). nil: it is another user.
  private func trustedUser(of descriptor: Descriptor) -> uid_t? {
    var pid: pid_t = 0
    var user: uid_t = 0
    var group: gid_t = 0
    guard clinux_peer_credentials(descriptor.raw, &pid, &user, &group) == 0 else { return nil }
    if user == 0 || user == getuid() { return user }
    daemon.log(.warning, "refused a client with user id \(user) (pid \(pid))")
    return nil
  }

  private func serve(_ client: Client, _ what: Epoll.Interest) {
    if what.contains(.writable) { flush(client) }
    let hungUp = what.contains(.hangUp) || what.contains(.error)
    if hungUp || what.contains(.readable) && !client.isFull {
      var bytes: [UInt8] = []
      let reception: Reception?
      do throws(SystemCallError) {
        reception = try Reception.take(from: client.descriptor, 65536, &bytes)
      } catch { return drop(client) }
      guard let reception else { return }
      // No request comes with descriptors.
      guard reception.passed.isEmpty else { return drop(client) }
      guard reception.count > 0 else {
        // What it has asked for goes on, though it won't hear of it.
        handleLines(of: client, atMost: .max)
        return drop(client)
      }
      client.framer.append(bytes[...])
    }
    handleLines(of: client, atMost: Self.maxAtOnce)
  }

  /// A client that asks faster than it can be answered, or than it reads, waits for its turn.
  private func handleLines(of client: Client, atMost limit: Int) {
    var count = 0
    defer {
      quota.heard(
        client.descriptor.raw, isPartial: client.framer.pendingBytes > 0 && !client.isFull,
        completed: count > 0, at: EventLoop.now)
    }
    do throws(LineFramer.Overflow) {
      while !client.isClosed, !client.isFull || limit == .max {
        if count == limit { return handleMoreLater(of: client) }
        guard let line = try client.framer.next() else { return }
        handle(line, from: client)
        count += 1
      }
    } catch {
      respond(to: client, ControlResponse(id: 0, result: .badRequest, text: "\(error)"))
      drop(client)
    }
  }

  private func handleMoreLater(of client: Client) {
    guard !client.isWaiting else { return }
    client.isWaiting = true
    daemon.loop.after(.milliseconds(1)) { [weak self] in
      client.isWaiting = false
      self?.handleLines(of: client, atMost: Self.maxAtOnce)
    }
  }

  private func handle(_ line: [UInt8], from client: Client) {
    let request: ControlRequest
    do throws(WireError) {
      request = try WireCodec.decode(ControlRequest.self, from: line)
    } catch {
      let id = WireCodec.requestID(in: line) ?? 0
      let text = "the request can't be read: \(error)"
      return respond(to: client, ControlResponse(id: id, result: .badRequest, text: text))
    }
    if request.verb == .shutdown {
      waitingForEnd.append((client, request.id))
      daemon.log(.notice, "a client asked for the end: stopping all workers")
      return daemon.end()
    }
    if request.verb == .leave {
      waitingForEnd.append((client, request.id))
      return daemon.leave()
    }
    if request.verb == .events, request.follow == true {
      follow(client, request.id, worker: request.worker)
    }
    if request.verb == .register {
      let refusal = daemon.wrappers.take(request.wrapper, from: client, at: EventLoop.now)
      if refusal == nil { daemon.follow(client) }
      return respond(
        to: client,
        ControlResponse(
          id: request.id, result: refusal == nil ? .done : .badRequest, text: refusal ?? "known"))
    }
    daemon.carryOut(request) { [weak self, weak client] response in
      guard let self, let client else { return }
      respond(to: client, response)
    }
  }

  /// Those who asked for the end hear of it before the socket closes.
  func announceEnd(_ text: String) {
    for (client, id) in waitingForEnd {
      respond(to: client, ControlResponse(id: id, result: .done, text: text))
    }
    waitingForEnd = []
  }

  func respond(to client: Client, _ response: ControlResponse) {
    guard !client.isClosed else { return }
    do throws(WireError) {
      client.pending += try WireCodec.line(for: response)
    } catch {
      daemon.log(.error, "an answer can't be sent: \(error)")
      let substitute = ControlResponse(
        id: response.id, result: .failed, text: "the answer can't be sent: \(error)")
      client.pending += (try? WireCodec.line(for: substitute)) ?? []
    }
    flush(client)
  }

  /// Writes what the socket takes; the rest when it takes more.
  func flush(_ client: Client) {
    while !client.pending.isEmpty {
      let count = kernelResult {
        send(
          client.descriptor.raw, client.pending, client.pending.count,
          Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count < 0 {
        if count == -Int(EINTR) { continue }
        if count != -Int(EAGAIN) || client.pending.count > Self.maxPending {
          return drop(client)
        }
        break
      }
      client.pending.removeFirst(count)
    }
    if client.pending.isEmpty, client.lostEvents > 0 { return tellLost(client) }
    guard let token = client.token, !client.isClosed else { return }
    var interest: Epoll.Interest = client.isFull ? [] : .readable
    if !client.pending.isEmpty { interest.insert(.writable) }
    try? daemon.loop.change(client.descriptor, token, to: interest)
  }

  func drop(_ client: Client) {
    guard !client.isClosed else { return }
    client.isClosed = true
    daemon.unfollow(client)
    if let token = client.token { daemon.loop.unwatch(client.descriptor, token) }
    clients[client.descriptor.raw] = nil
    quota.remove(client.descriptor.raw)
    setListening(.readable)
  }
}
