import Control
import Glibc
import JSONLines
import Linux

/// A connection to the control socket. Each connection in a daemon's life has its own number.
struct ClientID: Hashable, Sendable { let number: UInt64 }

/// Serves the control socket's clients: one JSON object a line. Each request is answered once, when
/// it is carried out. The server handles requests and answers only as messages; `ControlService`
/// knows their meaning. No client waits for a slow or hostile one. A client's cost is limited: see
/// `maxUnread` for when its requests are no longer read, and `maxPending` for when it is
/// disconnected. It belongs to the event loop's thread.
final class ControlServer {
  private let path: String
  private let loop: EventLoop
  private let log: DaemonLog
  /// The listening end and the service that answers, from `open` to `close`.
  private var listener: ControlListener?
  private var service: ControlService?
  private var clients: [ClientID: Client] = [:]
  private var clientCount: UInt64 = 0
  /// The clients that requested the daemon's end, with their requests.
  private var waitingForEnd: [(client: Client, id: UInt64)] = []
  private var quota: ClientQuota
  /// The time between two checks for clients that take too long to send a request.
  private let checkInterval: Duration

  /// The bytes of answers that may wait for a client that doesn't read. A client with more is
  /// disconnected. Beyond `maxUnread` only answers to earlier requests are added.
  static let maxPending = 2 * WireCodec.longestAnswer
  /// The number of unread bytes of answers from which no more requests are read.
  static let maxUnread = 256 << 10
  /// The maximum number of a client's requests that are handled before other clients have their
  /// turn.
  static let maxAtOnce = 16

  private final class Client {
    let id: ClientID
    let descriptor: Descriptor
    let process: pid_t
    var token: EventLoop.Token?
    var framer = LineFramer()
    var pending: [UInt8] = []
    var isClosed = false
    /// The requests that haven't been answered.
    var unanswered: [UInt64] = []
    /// Whether requests have been read that aren't handled yet. Nothing more is read until they
    /// are.
    var isWaiting = false
    /// Whether the client sends nothing any more. It may still read its answers.
    var hasEndedOutput = false
    /// Whether the client neither sends nor reads any more.
    var hasHungUp = false
    var isFull: Bool { pending.count > ControlServer.maxUnread }
    var isRead: Bool { !isFull && !isWaiting && !hasEndedOutput }

    init(_ id: ClientID, _ descriptor: Descriptor, process: pid_t) {
      self.id = id
      self.descriptor = descriptor
      self.process = process
    }
  }

  /// Opens nothing yet.
  init(
    path: String, _ loop: EventLoop, _ log: DaemonLog, quota: ClientQuota = ClientQuota(),
    checkInterval: Duration = .seconds(5)
  ) {
    self.path = path
    self.loop = loop
    self.log = log
    self.quota = quota
    self.checkInterval = checkInterval
  }

  /// Opens the socket and accepts clients. Call it once.
  func open(_ service: ControlService) throws(StartError) {
    let listener = try ControlListener(path: path, loop, log)
    do throws(SystemCallError) {
      try listener.begin(
        isFull: { [unowned self] in quota.isFull },
        admit: { [unowned self] in admit($0, $1) })
    } catch { throw .system(error) }
    (self.listener, self.service) = (listener, service)
    dropOverdue()
  }

  func close() {
    listener?.close()
    for client in clients.values { flush(client) }
    // The service has components that refer to this server, so it is released here.
    (listener, service, clients) = (nil, nil, [:])
  }

  private func admit(_ descriptor: Descriptor, _ peer: PeerCredentials) {
    clientCount += 1
    let client = Client(ClientID(number: clientCount), descriptor, process: peer.process)
    switch quota.admit(client.id, user: peer.user, at: EventLoop.now) {
    case .admitted: break
    case .insteadOf(let other): if let other = clients[other] { drop(other) }
    case .refused: return
    }
    // A client that can't be watched can't be served, so its connection is closed.
    client.token = try? loop.watch(descriptor, .readable) { [unowned self] what in
      serve(client, what)
    }
    if client.token != nil { clients[client.id] = client } else { quota.remove(client.id) }
  }

  /// Disconnects the clients that have taken too long to send a request, again and again.
  private func dropOverdue() {
    for id in quota.overdue(at: EventLoop.now) { if let client = clients[id] { drop(client) } }
    loop.after(checkInterval) { [weak self] in self?.dropOverdue() }
  }

  private func serve(_ client: Client, _ what: Epoll.Interest) {
    if what.contains(.writable) { flush(client) }
    let hungUp = what.contains(.hangUp) || what.contains(.error)
    if hungUp || what.contains(.readable) && client.isRead {
      var bytes: [UInt8] = []
      let reception: Reception?
      do throws(SystemCallError) {
        reception = try Reception.receive(from: client.descriptor, 65536, &bytes)
      } catch { return drop(client) }
      guard let reception else { return }
      // No request comes with descriptors.
      guard reception.passed.isEmpty else { return drop(client) }
      if reception.count == 0 {
        client.hasEndedOutput = true
        // A client that has only ended its output (shutdown(2), as socat does) isn't hung up.
        if hungUp { stopReading(client) } else { updateInterest(in: client) }
      }
      client.framer.append(bytes[...])
    }
    handleRequests(of: client)
  }

  private func stopReading(_ client: Client) {
    client.hasHungUp = true
    if let token = client.token.take() { loop.unwatch(client.descriptor, token) }
  }

  private func handleRequests(of client: Client) {
    handleLines(of: client)
    // The requests of a client that has hung up are carried out, although it won't get the answers.
    if !client.isWaiting, client.hasHungUp || isServed(client) { drop(client) }
  }

  /// Whether a client that has ended its output has got all that it asked for. Its whole lines have
  /// been handled.
  private func isServed(_ client: Client) -> Bool {
    client.hasEndedOutput && client.pending.isEmpty && client.unanswered.isEmpty
      && service?.following.isFollowing(client.id) != true
      && !waitingForEnd.contains { $0.client === client }
  }

  /// Handles a client's requests. A client that sends requests faster than they are answered, or
  /// than it reads, waits for its turn.
  private func handleLines(of client: Client) {
    var count = 0
    defer {
      quota.heard(
        client.id, isPartial: client.framer.pendingBytes > 0 && !client.isFull,
        completed: count > 0, at: EventLoop.now)
    }
    do throws(LineFramer.Overflow) {
      while !client.isClosed, !client.isFull || client.hasHungUp {
        if count == Self.maxAtOnce { return handleMoreLater(of: client) }
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
    updateInterest(in: client)
    loop.after(.milliseconds(1)) { [weak self] in
      client.isWaiting = false
      self?.handleRequests(of: client)
      self?.updateInterest(in: client)
    }
  }

  private func handle(_ line: [UInt8], from client: Client) {
    let request: ControlRequest
    do throws(WireError) {
      request = try WireCodec.decode(ControlRequest.self, from: line)
    } catch {
      let id = WireCodec.requestID(in: line) ?? 0
      let text = "can't read the request: \(error)"
      return respond(to: client, ControlResponse(id: id, result: .badRequest, text: text))
    }
    if request.verb == .shutdown || request.verb == .leave {
      waitingForEnd.append((client, request.id))
      service?.end(by: request.verb)
      return
    }
    client.unanswered.append(request.id)
    service?.handle(request, from: client.id) { [weak self, weak client] response in
      // If the request isn't in the list any more, the daemon's end has answered it.
      guard let self, let client, let index = client.unanswered.firstIndex(of: request.id)
      else { return }
      client.unanswered.remove(at: index)
      respond(to: client, response)
    }
  }

  /// Answers every open request before the socket closes: the requests for the daemon's end, and
  /// those that aren't carried out yet.
  func announceEnd(_ text: String) {
    for client in clients.values {
      for id in client.unanswered {
        respond(
          to: client, ControlResponse(id: id, result: .refused, text: "the daemon is ending"))
      }
      client.unanswered = []
    }
    for (client, id) in waitingForEnd {
      respond(to: client, ControlResponse(id: id, result: .done, text: text))
    }
    waitingForEnd = []
  }

  /// The pid of the connected process, as the kernel reports it; nil if the client has
  /// disconnected.
  func process(of client: ClientID) -> pid_t? { clients[client]?.process }

  private func respond(to client: Client, _ response: ControlResponse) {
    guard !client.isClosed else { return }
    do throws(WireError) {
      client.pending += try WireCodec.line(for: response, atMost: WireCodec.longestAnswer)
    } catch {
      log(.error, "can't send an answer: \(error)")
      let substitute = ControlResponse(
        id: response.id, result: .failed, text: "can't send the answer: \(error)")
      // Three short fields can always be encoded.
      client.pending += (try? WireCodec.line(for: substitute)) ?? []
    }
    flush(client)
  }

  /// Writes as much as the socket accepts now. The remainder is written when it accepts more.
  private func flush(_ client: Client) {
    let wasFull = client.isFull
    while !client.pending.isEmpty {
      let count = client.descriptor.send(client.pending, waits: false)
      if count < 0 {
        if count == -Int(EINTR) { continue }
        if count != -Int(EAGAIN) || client.pending.count > Self.maxPending {
          return drop(client)
        }
        break
      }
      client.pending.removeFirst(count)
    }
    // The service may send more.
    if client.pending.isEmpty, !client.isClosed { service?.following.didReadAll(client.id) }
    // Lines that were read before the client was full may wait, and no event would handle them. A
    // client that has ended its output may have got its last answer.
    if wasFull && !client.isFull || client.hasEndedOutput && client.pending.isEmpty {
      handleMoreLater(of: client)
    }
    updateInterest(in: client)
  }

  private func updateInterest(in client: Client) {
    guard let token = client.token, !client.isClosed else { return }
    var interest: Epoll.Interest = client.isRead ? .readable : []
    if !client.pending.isEmpty { interest.insert(.writable) }
    // epoll_ctl(2) on a watched descriptor fails only without memory. The next answer tries it
    // again.
    try? loop.change(client.descriptor, token, to: interest)
  }

  private func drop(_ client: Client) {
    guard !client.isClosed else { return }
    client.isClosed = true
    service?.didDisconnect(client.id)
    if let token = client.token { loop.unwatch(client.descriptor, token) }
    clients[client.id] = nil
    quota.remove(client.id)
    listener?.resume()
  }

  /// The bytes of answers that the client hasn't read; nil if it has disconnected.
  func unreadBytes(of client: ClientID) -> Int? { clients[client]?.pending.count }

  func send(_ response: ControlResponse, to client: ClientID) {
    if let client = clients[client] { respond(to: client, response) }
  }
}
