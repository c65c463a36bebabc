import ContainerPlan
import Control
import NIOPosix
import Synchronization

/// The daemon's control socket. Its calls wait, so they run on threads of their own.
final class AdoptingDaemon: Sendable {
  private let path: String
  private let isNamed: Bool
  private let client = Mutex<ControlClient?>(nil)

  /// The timeout of a call: adoption examines processes for up to 5 s, and a release reads an
  /// image.
  private static let timeout = Duration.seconds(60)

  /// - Parameter isNamed: True if the user has named the socket, as for `ControlClient`.
  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  struct DaemonState: Sendable {
    var pid: Int32
    var workers: [WorkerReport]
    /// True if only requests bring workers to the foreground, and not activity.
    var isManual: Bool
  }

  func poll() async throws(ControlError) -> DaemonState {
    try await perform { client throws(ControlError) in
      let response = try client.perform(.ps, timeout: Self.timeout)
      let policy = try client.perform(.policy, timeout: Self.timeout).policy
      return DaemonState(
        pid: response.daemon?.pid ?? 0, workers: response.workers ?? [],
        isManual: policy?.contains { $0.key == "foreground.mode" && $0.value == "manual" } ?? false)
    }
  }

  func adopt(
    _ wish: Wish, as name: String, wakingWith peers: [String]
  ) async throws(ControlError) -> ControlResponse {
    let specification = AdoptionSpecification(
      pid: wish.container.pid, startTime: wish.container.startTime, importance: wish.importance,
      mayBeTerminated: wish.mayTerminate,
      policy: wish.policy, settings: wish.settings.isEmpty ? nil : wish.settings,
      shadow: wish.isShadow ? true : nil, wakeWith: peers.isEmpty ? nil : peers,
      healthChecks: wish.healthChecks.isEmpty ? nil : wish.healthChecks)
    return try await perform { client throws(ControlError) in
      let id = try client.send(.adopt, worker: name) { $0.adoption = specification }
      return try client.response(to: id, timeout: Self.timeout)
    }
  }

  func release(_ name: String) async throws(ControlError) -> ControlResponse {
    try await perform { client throws(ControlError) in
      try client.perform(.release, worker: name, timeout: Self.timeout)
    }
  }

  private func perform<Value: Sendable>(
    _ body: @escaping @Sendable (inout ControlClient) throws(ControlError) -> Value
  ) async throws(ControlError) -> Value {
    do {
      return try await NIOThreadPool.singleton.runIfActive { [self] in
        try client.withLock { held in
          // After a failure a new connection is made.
          var client = try held.take() ?? ControlClient(connectingTo: path, isNamed: isNamed)
          let value = try body(&client)
          held = consume client
          return value
        }
      }
    } catch let error as ControlError { throw error } catch { throw .closedEarly(path: path) }
  }
}
