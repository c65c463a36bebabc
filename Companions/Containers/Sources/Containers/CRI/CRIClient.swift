import CRI
import ContainerPlan
import Control
import Linux
import Synchronization

/// The pods of a runtime under Kubernetes. CRI doesn't list pause containers, so they aren't
/// managed.
final class CRIClient: RuntimeClient {
  let runtime: Runtime
  /// The processes of containers that were running. A container that is started again has another
  /// id.
  private let processes = Mutex<[String: ProcessIdentity]>([:])
  private let interval: Duration

  /// - Parameter interval: The interval at which a runtime without a stream of events is asked.
  init(_ runtime: Runtime, interval: Duration = .seconds(2)) {
    self.runtime = runtime
    self.interval = interval
  }

  func containers() async throws(EngineError) -> [Container] {
    try await use { connection throws(CRIError) in try await self.containers(connection) }
  }

  private func containers(_ connection: CRIConnection) async throws(CRIError) -> [Container] {
    var pods: [String: CRIMessages.Sandbox] = [:]
    for pod in try await connection.sandboxes()
    where pod.isReady && PodAnnotations.matter(pod.annotations) { pods[pod.id] = pod }
    var containers: [Container] = []
    var running: [String: ProcessIdentity] = [:]
    if !pods.isEmpty {
      for listed in try await connection.containers() {
        guard let pod = pods[listed.sandbox] else { continue }
        guard let process = try await process(of: listed.id, connection) else { continue }
        running[listed.id] = process
        var container = Container(listed, of: pod, pid: process.pid, runtime: runtime.name)
        container.startTime = process.startTime
        containers.append(container)
      }
    }
    processes.withLock { $0 = running }
    return containers
  }

  /// Returns the container's process; nil if it doesn't run any more.
  private func process(
    of id: String, _ connection: CRIConnection
  ) async throws(CRIError) -> ProcessIdentity? {
    if let process = processes.withLock({ $0[id] }) { return process }
    guard let text = try await connection.information(of: id) else { return nil }
    // The field that containerd and CRI-O both write.
    struct Information: Decodable { var pid: Int32 }
    do {
      let pid = try WireCodec.decode(Information.self, from: Array(text.utf8)).pid
      // The process has ended.
      guard pid > 0, let start = ContainerWatch.startTime(pid) else { return nil }
      return ProcessIdentity(pid: pid, startTime: start)
    } catch { throw .malformed("the information about container \(id) has no `pid`: \(error)") }
  }

  func followEvents(
    opened: @escaping @Sendable () async -> Void, changed: @escaping @Sendable () async -> Void
  ) async throws(EngineError) {
    try await use { [interval] connection throws(CRIError) in
      let version = try await connection.version()
      await opened()
      guard version.hasEventsForAll else {
        return try await Self.ask(connection, every: interval, changed)
      }
      do throws(CRIError) {
        try await connection.followEvents(changed: changed)
      } catch .unsupported {
        try await Self.ask(connection, every: interval, changed)
      }
    }
    throw .closed
  }

  /// Asks the runtime again and again. It returns only by throwing an error, when the runtime
  /// doesn't answer any more.
  private static func ask(
    _ connection: CRIConnection, every interval: Duration,
    _ changed: @escaping @Sendable () async -> Void
  ) async throws(CRIError) {
    while true {
      do { try await Task.sleep(for: interval) } catch { throw .closed }
      _ = try await connection.version()
      await changed()
    }
  }

  private func use<Value: Sendable>(
    _ body: @Sendable (CRIConnection) async throws(CRIError) -> Value
  ) async throws(EngineError) -> Value {
    do throws(CRIError) {
      return try await CRIConnection.use(socket: runtime.socket, body)
    } catch { throw .cri(error) }
  }
}

extension Container {
  init(
    _ listed: CRIMessages.Container, of pod: CRIMessages.Sandbox, pid: Int32, runtime: String
  ) {
    self.init(
      runtime: runtime, id: listed.id, name: "\(pod.namespace).\(pod.name).\(listed.name)",
      labels: PodAnnotations.labels(of: listed.name, in: pod.annotations), pid: pid)
    self.pod = pod.id
    let source = pod.annotations["kubernetes.io/config.source"]
    member = PodMember(
      namespace: pod.namespace, pod: pod.name, uid: pod.uid, container: listed.name,
      isStatic: source != nil && source != "api")
  }
}
