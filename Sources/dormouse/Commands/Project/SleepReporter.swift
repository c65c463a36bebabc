import Control
import Linux

/// Prints a line on standard error when a worker of the project falls asleep, wakes or fails.
/// Standard output has only the workers' output.
final class SleepReporter {
  private let connection: ConnectionOptions
  private var source: EventSource?
  private var lines = SleepLines()
  /// The lines about workers that had failed before events were received, by name.
  private var failures: [String: String]?

  /// The connection for events. It is a class because a client can't be copied out of an optional.
  private final class EventSource {
    var daemon: DaemonConnection

    init(_ options: ConnectionOptions) throws {
      daemon = try options.connect()
      let id = try daemon.client.send(.events) { $0.follow = true }
      _ = try daemon.client.response(to: id, timeout: .seconds(2))
    }
  }

  init(_ connection: ConnectionOptions) { self.connection = connection }

  /// The descriptor to poll; nil if no daemon reports events.
  var descriptor: Int32? { source?.daemon.client.descriptor }

  /// Connects if it isn't connected: after an upgrade another daemon runs.
  func connect() {
    // Without events the workers' output is still shown, and the next call tries again.
    if source == nil { source = try? EventSource(connection) }
    if source != nil, failures == nil { reportFailures() }
  }

  private func reportFailures() {
    let failed = workers()?.compactMap { worker in failureText(of: worker).map { (worker.name, $0) }
    }
    failures = Dictionary(failed ?? [], uniquingKeysWith: { first, _ in first })
    for (_, line) in failed ?? [] { Output.complain(line) }
  }

  /// Prints the events since the last call.
  func report() {
    var messages: [String] = []
    var hasHibernated = false
    do {
      while let event = try source?.daemon.client.nextEvent(within: .zero) {
        let now = Double(Clocks.monotonic) / 1e9
        guard var line = lines.line(for: event, at: now) else { continue }
        if event.to == "terminated", let name = event.worker {
          // The daemon knows more than the event: whether the worker is started again.
          line = workers()?.first { $0.name == name }.flatMap(failureText) ?? line
          if failures?.removeValue(forKey: name) == line { continue }
        }
        messages.append(line)
        if event.to == "hibernated" { hasHibernated = true }
      }
    } catch { source = nil }
    if hasHibernated, !messages.isEmpty, let saved = savedNow() {
      messages[messages.count - 1] += "; saved now \(saved)"
    }
    for line in messages { Output.complain(line) }
  }

  private func savedNow() -> String? { workers().flatMap(savedNowText) }

  /// Returns the workers; nil if the daemon is busy, or has ended. The lines are then printed
  /// without its information.
  private func workers() -> [WorkerReport]? { connection.workersIfAnswered() }
}
