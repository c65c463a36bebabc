import Glibc
import Linux
import Policy
import Supervision

/// Answers health checks of one run of a worker while it sleeps, without waking it
/// (`health_checks_while_asleep:`). It has no part in the worker's connections while the worker
/// runs.
///
/// - A port alone: the queue of connections is inspected, and only connections that have been
///   closed again are removed from it. So the port may be the worker's main one: a client that
///   sends data, or stays connected, wakes the worker, which then serves the client.
/// - A port and a path: the request of a connection can only be read by accepting the connection,
///   and then it can't be passed on. So any other request gets 503 with Retry-After, and wakes the
///   worker. This is for a port that only health checks use.
///
/// Belongs to the loop's thread.
final class HealthCheckResponder {
  /// The time that a client has to send its request.
  private static let requestTimeout = Duration.seconds(1)
  /// A client that is still connected after this time, and has sent nothing, waits for a greeting
  /// of the server.
  private static let silenceLimit = Duration.milliseconds(200)
  private static let maxVisits = 64
  /// The maximum number of connections that are accepted in one turn of the loop.
  private static let maxAccepts = 64
  /// If no descriptor is free for a connection, the port is checked again after this time.
  static let shortagePause = Duration.seconds(1)

  private let watches: any DescriptorWatches
  private let timers: any Timers
  private let warn: (String) -> Void
  private var session: Session?

  /// One sleep, from the suspension to the wake. All watches and timers end with it.
  private final class Session {
    let wake: (String) -> Void
    var watched: [(descriptor: Descriptor, token: EventLoop.Token)] = []
    var timers: [ObjectIdentifier: EventLoop.Token] = [:]
    var visits: [ObjectIdentifier: Visit] = [:]
    var count = 0
    init(_ wake: @escaping (String) -> Void) { self.wake = wake }
  }

  /// A connection that was accepted for the worker.
  private final class Visit {
    let connection: Descriptor
    var request: HealthRequest
    var token: EventLoop.Token?
    var timeout: EventLoop.Token?
    init(_ connection: Descriptor, paths: [String]) {
      self.connection = connection
      request = HealthRequest(paths: paths)
    }
  }

  init(
    _ watches: any DescriptorWatches, _ timers: any Timers, warn: @escaping (String) -> Void
  ) {
    self.watches = watches
    self.timers = timers
    self.warn = warn
  }

  /// The number of health checks that were answered since the worker fell asleep; nil: none are
  /// answered.
  var count: Int? { session?.count }

  /// Begins to answer: the worker has fallen asleep.
  ///
  /// - Parameter wake: called with the reason when anything but a health check arrives.
  func answer(
    at listeners: [AsleepListener], _ checks: [AsleepAnswer], wake: @escaping (String) -> Void
  ) {
    stop()
    guard !listeners.isEmpty else { return }
    let session = Session(wake)
    self.session = session
    for listener in listeners {
      let paths = checks.filter { $0.port == listener.port }.compactMap(\.path)
      watch(listener, session) { [unowned self] in
        if paths.isEmpty {
          inspect(at: listener, session, since: timers.now)
        } else {
          receive(at: listener, paths, session)
        }
      }
    }
  }

  /// Ends all watches: the worker runs again, or never will. Connections that it can still serve
  /// stay in the queue.
  func stop() {
    guard let session else { return }
    self.session = nil
    for (descriptor, token) in session.watched { watches.unwatch(descriptor, token) }
    session.watched = []
    for timer in session.timers.values { timers.cancel(timer) }
    session.timers = [:]
    for visit in session.visits.values {
      finish(visit, session: session, response: Self.unavailable)
    }
  }

  private func watch(
    _ listener: AsleepListener, _ session: Session, _ action: @escaping () -> Void
  ) {
    do throws(SystemCallError) {
      let token = try watches.whenReadable(listener.descriptor, do: action)
      session.watched.append((listener.descriptor, token))
    } catch {
      warn("can't answer health checks on port \(listener.port): \(error)")
    }
  }

  private func wake(_ session: Session, _ reason: String) {
    if self.session === session { session.wake(reason) }
  }

  // MARK: a port alone

  private func inspect(at listener: AsleepListener, _ session: Session, since: Instant) {
    let key = ObjectIdentifier(listener.descriptor)
    guard self.session === session, session.timers[key] == nil else { return }
    switch listener.inspect() {
    case .empty: resume(listener, session)
    case .onlyChecks(let count):
      do throws(SystemCallError) { try listener.discard(count) } catch {
        return pauseForShortage(listener, in: session, after: error) { [unowned self] in
          inspect(at: listener, session, since: timers.now)
        }
      }
      session.count += count
      resume(listener, session)
    case .silent where timers.now - since < Self.silenceLimit:
      // The connections in the queue would make the port readable again at once, so a timer checks
      // them until each has closed or sent data.
      pause(listener, session)
      session.timers[key] = timers.after(.milliseconds(20)) { [unowned self] in
        session.timers[key] = nil
        inspect(at: listener, session, since: since)
      }
    case .silent, .request:
      pause(listener, session)
      wake(session, "a connection on port \(listener.port)")
    }
  }

  private func pause(_ listener: AsleepListener, _ session: Session) {
    guard
      let index = session.watched.firstIndex(where: { $0.descriptor === listener.descriptor })
    else { return }
    watches.unwatch(listener.descriptor, session.watched[index].token)
    session.watched.remove(at: index)
  }

  private func resume(_ listener: AsleepListener, _ session: Session) {
    guard !session.watched.contains(where: { $0.descriptor === listener.descriptor }) else {
      return
    }
    watch(listener, session) { [unowned self] in
      inspect(at: listener, session, since: timers.now)
    }
  }

  // MARK: a port and a path

  private func receive(at listener: AsleepListener, _ paths: [String], _ session: Session) {
    // A port with more connections stays readable. The loop handles other events before the next
    // call, even if clients connect faster than they are accepted.
    for _ in 0..<Self.maxAccepts {
      guard self.session === session else { return }
      let connection: Descriptor
      do throws(SystemCallError) {
        // nil: the queue is empty, or the connection has been closed.
        guard let next = try acceptConnection(listener.descriptor) else { return }
        connection = next
      } catch {
        return pauseForShortage(listener, in: session, after: error) { [unowned self] in
          watch(listener, session) { [unowned self] in receive(at: listener, paths, session) }
        }
      }
      let visit = Visit(connection, paths: paths)
      if session.visits.count >= Self.maxVisits {
        finish(visit, session: session, response: Self.unavailable)
        continue
      }
      session.visits[ObjectIdentifier(visit)] = visit
      visit.timeout = timers.after(Self.requestTimeout) { [unowned self] in
        visit.timeout = nil
        refuse(visit, listener: listener, session: session)
      }
      // A connection that can't be watched is answered with 503 when its time limit is reached.
      visit.token = try? watches.whenReadable(connection) { [unowned self] in
        didReceiveData(visit, listener: listener, session: session)
      }
    }
  }

  /// Pauses the port, because no connection can be accepted now. The port stays readable, so a
  /// watch would report it again and again.
  private func pauseForShortage(
    _ listener: AsleepListener, in session: Session, after error: SystemCallError,
    then retry: @escaping () -> Void
  ) {
    let key = ObjectIdentifier(listener.descriptor)
    guard session.timers[key] == nil else { return }
    warn("can't answer health checks on port \(listener.port) for now: \(error)")
    pause(listener, session)
    session.timers[key] = timers.after(Self.shortagePause) { [unowned self] in
      session.timers[key] = nil
      if self.session === session { retry() }
    }
  }

  private func didReceiveData(_ visit: Visit, listener: AsleepListener, session: Session) {
    let bytes: [UInt8]
    do throws(SystemCallError) {
      bytes = try visit.connection.read(upTo: 8 << 10)
    } catch {
      if error.code == EAGAIN { return }
      bytes = []
    }
    if bytes.isEmpty {
      // The client connected and closed the connection, which is a check of the port.
      let isCheck = visit.request.isEmpty
      if isCheck { session.count += 1 }
      if !isCheck { wake(session, Self.reason(listener)) }
      return finish(visit, session: session, response: nil)
    }
    switch visit.request.receive(bytes) {
    case .incomplete: break
    case .check(let hasBody):
      session.count += 1
      finish(visit, session: session, response: hasBody ? Self.healthy + "asleep\n" : Self.healthy)
    case .other: refuse(visit, listener: listener, session: session)
    }
  }

  private func refuse(_ visit: Visit, listener: AsleepListener, session: Session) {
    finish(visit, session: session, response: Self.unavailable)
    wake(session, Self.reason(listener))
  }

  private static func reason(_ listener: AsleepListener) -> String {
    "a request on port \(listener.port), not a health check"
  }

  private func finish(_ visit: Visit, session: Session, response: String?) {
    if let token = visit.token { watches.unwatch(visit.connection, token) }
    if let timeout = visit.timeout { timers.cancel(timeout) }
    (visit.token, visit.timeout) = (nil, nil)
    session.visits[ObjectIdentifier(visit)] = nil
    guard let response else { return }
    // The buffer of a new connection has room for the whole response.
    let bytes = Array(response.utf8)
    _ = visit.connection.send(bytes, waits: true)
    visit.connection.endOutput()
  }

  private static let healthy =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n"
    + "X-Dormouse: asleep\r\nConnection: close\r\n\r\n"
  private static let unavailable =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    + "X-Dormouse: waking\r\nConnection: close\r\n\r\n"
}
