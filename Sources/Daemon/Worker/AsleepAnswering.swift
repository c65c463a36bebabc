import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

// `health_checks_while_asleep:`. Health checks of a sleeping worker, answered without waking it, and with nobody in
// its data path while it runs.
//
//     a port alone        The queue is looked at, and nothing is taken from it but connections that have
//                         gone again. So the port may be the worker's main one: whoever says something,
//                         or stays, wakes it, and is served by it.
//     a port and a path   What a connection asks can only be read by accepting it, and then it can't be
//                         handed on. So what isn't the check gets 503 with Retry-After, and wakes the
//                         worker: for a port that health checks have to themselves.

/// What answers for one sleeping worker. All of it ends with its sleep.
final class AsleepAnswering {
  fileprivate var watches: [(descriptor: Descriptor, token: EventLoop.Token)] = []
  fileprivate var timers: [ObjectIdentifier: EventLoop.Token] = [:]
  fileprivate var visits: [ObjectIdentifier: Visit] = [:]
  /// Answered since it fell asleep.
  fileprivate(set) var count = 0

  /// A connection that was accepted in the worker's place.
  fileprivate final class Visit {
    let connection: Descriptor
    var request: HealthRequest
    var token: EventLoop.Token?
    var timeout: EventLoop.Token?
    init(_ connection: Descriptor, path: String) {
      self.connection = connection
      request = HealthRequest(path: path)
    }
  }
}

extension WorkerRuntime {
  /// Ports at which a connection alone is no reason to wake it.
  var answeredPorts: Set<UInt16> { Set(configuration.healthChecksWhileAsleep.map(\.port)) }

  /// Those that health checks have to themselves: no activity, while it runs.
  var healthPorts: Set<UInt16> {
    Set(configuration.healthChecksWhileAsleep.filter { $0.path != nil }.map(\.port))
  }
}

extension Daemon {
  /// A visitor has so long to say what it wants.
  private static let patience = Duration.seconds(1)
  /// Who has connected and is still there after this, without a word, waits for a greeting.
  private static let silence = Duration.milliseconds(200)
  private static let maxVisits = 64

  /// It has fallen asleep.
  func answer(for runtime: WorkerRuntime, at listeners: [AsleepListener]) {
    stopAnswering(for: runtime)
    guard !listeners.isEmpty else { return }
    let answering = AsleepAnswering()
    runtime.answering = answering
    for listener in listeners {
      let paths = runtime.configuration.healthChecksWhileAsleep.filter { $0.port == listener.port }
      let path = paths.lazy.compactMap(\.path).first
      watch(listener, for: runtime, answering) { [unowned self] in
        if let path {
          receive(at: listener, path, runtime, answering)
        } else {
          look(at: listener, runtime, answering, since: EventLoop.now)
        }
      }
    }
  }

  /// It runs again, or never will. Whom it could still serve stays in its queue.
  func stopAnswering(for runtime: WorkerRuntime) {
    guard let answering = runtime.answering else { return }
    runtime.answering = nil
    for (descriptor, token) in answering.watches { loop.unwatch(descriptor, token) }
    answering.watches = []
    for timer in answering.timers.values { loop.cancel(timer) }
    answering.timers = [:]
    for visit in answering.visits.values { finish(visit, answering, Self.unavailable) }
  }

  private func watch(
    _ listener: AsleepListener, for runtime: WorkerRuntime, _ answering: AsleepAnswering,
    _ action: @escaping () -> Void
  ) {
    do throws(SystemCallError) {
      let token = try loop.watch(listener.descriptor, .readable) { _ in action() }
      answering.watches.append((listener.descriptor, token))
    } catch {
      log(.warning, "\(runtime.id): its health checks at port \(listener.port): \(error)")
    }
  }

  private func wake(_ runtime: WorkerRuntime, _ answering: AsleepAnswering, _ why: String) {
    guard runtime.answering === answering else { return }
    runtime.unheardCall = why
    driver.send(.wakeNeeded(runtime.id, why))
  }

  // MARK: a port alone

  private func look(
    at listener: AsleepListener, _ runtime: WorkerRuntime, _ answering: AsleepAnswering,
    since: Instant
  ) {
    let key = ObjectIdentifier(listener.descriptor)
    guard runtime.answering === answering, answering.timers[key] == nil else { return }
    switch listener.look() {
    case .empty: resume(listener, runtime, answering)
    case .onlyChecks(let count):
      listener.discard(count)
      answering.count += count
      resume(listener, runtime, answering)
    case .silent where EventLoop.now - since < Self.silence:
      // What is in the queue would call again at once: looked at by the clock until it is settled.
      pause(listener, answering)
      answering.timers[key] = loop.after(.milliseconds(20)) { [unowned self] in
        answering.timers[key] = nil
        look(at: listener, runtime, answering, since: since)
      }
    case .silent, .call:
      pause(listener, answering)
      wake(runtime, answering, "a connection on port \(listener.port)")
    }
  }

  private func pause(_ listener: AsleepListener, _ answering: AsleepAnswering) {
    guard let place = answering.watches.firstIndex(where: { $0.descriptor === listener.descriptor })
    else { return }
    loop.unwatch(listener.descriptor, answering.watches[place].token)
    answering.watches.remove(at: place)
  }

  private func resume(
    _ listener: AsleepListener, _ runtime: WorkerRuntime, _ answering: AsleepAnswering
  ) {
    guard !answering.watches.contains(where: { $0.descriptor === listener.descriptor }) else {
      return
    }
    watch(listener, for: runtime, answering) { [unowned self] in
      look(at: listener, runtime, answering, since: EventLoop.now)
    }
  }

  // MARK: a port and a path

  private func receive(
    at listener: AsleepListener, _ path: String, _ runtime: WorkerRuntime,
    _ answering: AsleepAnswering
  ) {
    while runtime.answering === answering {
      guard let connection = try? acceptConnection(listener.descriptor) else { return }
      let visit = AsleepAnswering.Visit(connection, path: path)
      if answering.visits.count >= Self.maxVisits {
        finish(visit, answering, Self.unavailable)
        continue
      }
      answering.visits[ObjectIdentifier(visit)] = visit
      visit.timeout = loop.after(Self.patience) { [unowned self] in
        visit.timeout = nil
        turnAway(visit, listener, runtime, answering)
      }
      visit.token = try? loop.watch(connection, .readable) { [unowned self] _ in
        hear(visit, listener, runtime, answering)
      }
    }
  }

  private func hear(
    _ visit: AsleepAnswering.Visit, _ listener: AsleepListener, _ runtime: WorkerRuntime,
    _ answering: AsleepAnswering
  ) {
    let part: [UInt8]
    do throws(SystemCallError) {
      part = try visit.connection.read(upTo: 8 << 10)
    } catch {
      if error.code == EAGAIN { return }
      part = []
    }
    if part.isEmpty {
      // Connected and gone: a check of the port.
      let isCheck = visit.request.isEmpty
      if isCheck { answering.count += 1 }
      if !isCheck { wake(runtime, answering, Self.reason(listener)) }
      return finish(visit, answering, nil)
    }
    switch visit.request.take(part) {
    case .incomplete: break
    case .check(let hasBody):
      answering.count += 1
      finish(visit, answering, hasBody ? Self.healthy + "asleep\n" : Self.healthy)
    case .other: turnAway(visit, listener, runtime, answering)
    }
  }

  private func turnAway(
    _ visit: AsleepAnswering.Visit, _ listener: AsleepListener, _ runtime: WorkerRuntime,
    _ answering: AsleepAnswering
  ) {
    finish(visit, answering, Self.unavailable)
    wake(runtime, answering, Self.reason(listener))
  }

  private static func reason(_ listener: AsleepListener) -> String {
    "a request on port \(listener.port) that is no health check"
  }

  private func finish(
    _ visit: AsleepAnswering.Visit, _ answering: AsleepAnswering, _ response: String?
  ) {
    if let token = visit.token { loop.unwatch(visit.connection, token) }
    if let timeout = visit.timeout { loop.cancel(timeout) }
    (visit.token, visit.timeout) = (nil, nil)
    answering.visits[ObjectIdentifier(visit)] = nil
    guard let response else { return }
    // A new connection's buffer holds all of it.
    let bytes = Array(response.utf8)
    _ = Glibc.send(visit.connection.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    shutdown(visit.connection.raw, Int32(SHUT_WR))
  }

  private static let healthy =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n"
    + "X-Dormouse: asleep\r\nConnection: close\r\n\r\n"
  private static let unavailable =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    + "X-Dormouse: waking\r\nConnection: close\r\n\r\n"
}
