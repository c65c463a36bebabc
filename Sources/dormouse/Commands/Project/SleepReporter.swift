import Control
import Linux

/// Prints a line when a worker of the project falls asleep or wakes, on standard error: standard output has the
/// workers' output alone.
final class SleepReporter {
  private let connection: ConnectionOptions
  private var source: EventSource?
  private var lines = SleepLines()

  /// A client can't be copied out of an optional.
  private final class EventSource {
    var daemon: DaemonConnection

    init(_ options: ConnectionOptions) throws {
      daemon = try options.connect()
      let id = try daemon.client.send(.events, follow: true)
      _ = try daemon.client.response(to: id, timeout: .seconds(2))
    }
  }

  init(_ connection: ConnectionOptions) { self.connection = connection }

  /// To poll; nil: no daemon reports events.
  var descriptor: Int32? { source?.daemon.client.descriptor }

  /// Connects if it isn't connected: after an upgrade another daemon runs.
  func connect() {
    // Without events the workers' output is still shown, and the next call tries again.
    if source == nil { source = try? EventSource(connection) }
  }

  /// Prints what has happened since the last call.
  func report() {
    var found: [String] = []
    var hasHibernated = false
    do {
      while let event = try source?.daemon.client.nextEvent(within: .zero) {
        let now = Double(Clocks.monotonic) / 1e9
        guard let line = lines.line(for: event, at: now) else { continue }
        found.append(line)
        if event.to == "hibernated" { hasHibernated = true }
      }
    } catch { source = nil }
    if hasHibernated, !found.isEmpty, let saved = savedNow() {
      found[found.count - 1] += "; saved now \(saved)"
    }
    for line in found { Output.complain(line) }
  }

  private func savedNow() -> String? {
    // A daemon that is busy, or has ended, has no numbers now.
    guard var daemon = try? connection.connect(),
      let workers = try? daemon.client.perform(.ps, timeout: .seconds(2)).workers
    else { return nil }
    return savedNowText(workers)
  }
}
