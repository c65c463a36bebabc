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
  /// Wakes the worker, with the reason.
  private var wake: (String) -> Void = { _ in }
  private var ports: [Port] = []
  private var visits: [ObjectIdentifier: Visit] = [:]
  /// The number of health checks that were answered since the worker fell asleep; nil: none are
  /// answered.
  private(set) var count: Int?

  /// A port during one sleep, from the suspension to the wake. All watches and timers end with it.
  private final class Port {
    let listener: AsleepListener
    /// The paths of its health checks; empty: a connection alone is a health check.
    let paths: [String]
    var token: EventLoop.Token?
    let pause: TimedOperation
    init(_ listener: AsleepListener, _ checks: [AsleepAnswer], timers: any Timers) {
      self.listener = listener
      paths = checks.filter { $0.port == listener.port }.compactMap(\.path)
      pause = TimedOperation(timers)
    }
  }

  /// A connection that was accepted for the worker.
  private final class Visit {
    let connection: Descriptor
    let port: Port
    var request: HealthRequest
    var token: EventLoop.Token?
    var timeout: EventLoop.Token?
    init(_ connection: Descriptor, at port: Port) {
      self.connection = connection
      self.port = port
      request = HealthRequest(paths: port.paths)
    }
  }

  init(
    _ watches: any DescriptorWatches, _ timers: any Timers, warn: @escaping (String) -> Void
  ) {
    self.watches = watches
    self.timers = timers
    self.warn = warn
  }

  /// Begins to answer: the worker has fallen asleep.
  ///
  /// - Parameter wake: called with the reason when anything but a health check arrives.
  func answer(
    at listeners: [AsleepListener], _ checks: [AsleepAnswer], wake: @escaping (String) -> Void
  ) {
    stop()
    guard !listeners.isEmpty else { return }
    (self.wake, count) = (wake, 0)
    ports = listeners.map { Port($0, checks, timers: timers) }
    for port in ports { watch(port) }
  }

  /// Ends all watches: the worker runs again, or never will. Connections that it can still serve
  /// stay in the queue.
  func stop() {
    for port in ports {
      unwatch(port)
      port.pause.cancel()
    }
    (ports, count) = ([], nil)
    for visit in visits.values { finish(visit, response: Self.unavailable) }
  }

  private func watch(_ port: Port) {
    guard port.token == nil else { return }
    do throws(SystemCallError) {
      port.token = try watches.whenReadable(port.listener.descriptor) { [unowned self] in
        if port.paths.isEmpty { inspect(port, since: timers.now) } else { receive(at: port) }
      }
    } catch {
      warn("can't answer health checks on port \(port.listener.port): \(error)")
    }
  }

  private func unwatch(_ port: Port) {
    if let token = port.token { watches.unwatch(port.listener.descriptor, token) }
    port.token = nil
  }

  /// Ends the watch of a port that stays readable, so that it isn't reported again and again.
  private func pause(_ port: Port, for time: Duration, then proceed: @escaping () -> Void) {
    unwatch(port)
    port.pause.wait(time, then: proceed)
  }

  private func pauseForShortage(_ port: Port, after error: SystemCallError) {
    warn("can't answer health checks on port \(port.listener.port) for now: \(error)")
    pause(port, for: Self.shortagePause) { [unowned self] in watch(port) }
  }

  private func isOpen(_ port: Port) -> Bool { ports.contains { $0 === port } }

  // MARK: a port alone

  private func inspect(_ port: Port, since: Instant) {
    guard isOpen(port), !port.pause.isUnderWay else { return }
    switch port.listener.inspect() {
    case .empty: watch(port)
    case .onlyChecks(let count):
      do throws(SystemCallError) { try port.listener.discard(count) } catch {
        return pauseForShortage(port, after: error)
      }
      self.count? += count
      watch(port)
    case .silent where timers.now - since < Self.silenceLimit:
      // A timer checks the connections in the queue until each has closed or sent data.
      pause(port, for: .milliseconds(20)) { [unowned self] in inspect(port, since: since) }
    case .silent, .request:
      unwatch(port)
      wake("a connection on port \(port.listener.port)")
    }
  }

  // MARK: a port and a path

  private func receive(at port: Port) {
    // A port with more connections stays readable. The loop handles other events before the next
    // call, even if clients connect faster than they are accepted.
    for _ in 0..<Self.maxAccepts {
      guard isOpen(port) else { return }
      let connection: Descriptor
      do throws(SystemCallError) {
        // nil: the queue is empty, or the connection has been closed.
        guard let next = try acceptConnection(port.listener.descriptor) else { return }
        connection = next
      } catch { return pauseForShortage(port, after: error) }
      let visit = Visit(connection, at: port)
      if visits.count >= Self.maxVisits {
        finish(visit, response: Self.unavailable)
        continue
      }
      visits[ObjectIdentifier(visit)] = visit
      visit.timeout = timers.after(Self.requestTimeout) { [unowned self] in refuse(visit) }
      // A connection that can't be watched is answered with 503 when its time limit is reached.
      visit.token = try? watches.whenReadable(connection) { [unowned self] in
        didReceiveData(visit)
      }
    }
  }

  private func didReceiveData(_ visit: Visit) {
    let bytes: [UInt8]
    do throws(SystemCallError) {
      bytes = try visit.connection.read(upTo: 8 << 10)
    } catch {
      if error.code == EAGAIN { return }
      bytes = []
    }
    if bytes.isEmpty {
      // The client connected and closed the connection, which is a check of the port.
      if visit.request.isEmpty { count? += 1 } else { wakeForRequest(visit) }
      return finish(visit, response: nil)
    }
    switch visit.request.receive(bytes) {
    case .incomplete: break
    case .check(let hasBody):
      count? += 1
      finish(visit, response: hasBody ? Self.healthy + "asleep\n" : Self.healthy)
    case .other: refuse(visit)
    }
  }

  private func refuse(_ visit: Visit) {
    finish(visit, response: Self.unavailable)
    wakeForRequest(visit)
  }

  private func wakeForRequest(_ visit: Visit) {
    guard isOpen(visit.port) else { return }
    wake("a request on port \(visit.port.listener.port), not a health check")
  }

  private func finish(_ visit: Visit, response: String?) {
    if let token = visit.token { watches.unwatch(visit.connection, token) }
    if let timeout = visit.timeout { timers.cancel(timeout) }
    (visit.token, visit.timeout) = (nil, nil)
    visits[ObjectIdentifier(visit)] = nil
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
