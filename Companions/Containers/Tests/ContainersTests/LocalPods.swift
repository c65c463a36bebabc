import Foundation

@testable import CRI

// The requests of kubelet to a runtime that the tests need.
extension LocalContainerd {
  struct Pod: Sendable {
    var id: String
    var name: String
    fileprivate var configuration: @Sendable (inout ProtobufWriter) -> Void
  }

  /// Starts a pod in the namespace `default`.
  func startPod(_ name: String, annotations: [String: String]) async throws -> Pod {
    let configuration: @Sendable (inout ProtobufWriter) -> Void = { pod in
      pod.message(1) {
        $0.text(1, name)
        $0.text(2, "uid-\(name)")
        $0.text(3, "default")
      }
      pod.map(7, annotations)
      pod.message(8) { $0.message(2) { Self.inHostNetwork(1, &$0) } }
    }
    let id = try await ask("RunPodSandbox") { $0.message(1, configuration) }
    return Pod(id: id, name: name, configuration: configuration)
  }

  private static func inHostNetwork(_ field: UInt64, _ writer: inout ProtobufWriter) {
    writer.message(field) { $0.number(1, 2) }
  }

  /// Starts a container of a pod, which sees this machine's programs.
  func startContainer(
    _ name: String, of pod: Pod, attempt: UInt64 = 0, _ command: [String]
  ) async throws -> String {
    let id = try await ask("CreateContainer") { [path = scratch.path] request in
      request.text(1, pod.id)
      request.message(2) { container in
        container.message(1) {
          $0.text(1, name)
          $0.number(2, attempt)
        }
        container.message(2) { $0.text(1, Self.image) }
        for word in command { container.text(3, word) }
        for (inside, outside) in [("/usr", "/usr"), ("/test", path)] {
          container.message(7) {
            $0.text(1, inside)
            $0.text(2, outside)
            $0.number(3, 1)
          }
        }
        container.message(15) { $0.message(2) { Self.inHostNetwork(3, &$0) } }
      }
      request.message(3, pod.configuration)
    }
    _ = try await ask("StartContainer") { $0.text(1, id) }
    return id
  }

  /// Stops a container, as kubelet does before it starts the next one with this name.
  func stop(_ container: String, within seconds: UInt64) async throws {
    _ = try await ask("StopContainer") {
      $0.text(1, container)
      $0.number(2, seconds)
    }
  }

  /// Runs a command in a container, and returns what it has printed.
  func execute(_ command: [String], in container: String) async throws -> String {
    try await ask("ExecSync") { request in
      request.text(1, container)
      for word in command { request.text(2, word) }
      request.number(3, 60)
    }
  }

  func exitCode(of container: String) async throws -> UInt64? {
    let answer = try await answer("ContainerStatus") { $0.text(1, container) }
    var reader = ProtobufReader(answer[...])
    while let (field, value) = try reader.next() {
      guard field == 1, case .bytes(let status) = value else { continue }
      var fields = ProtobufReader(status)
      var isOver = false
      var code: UInt64 = 0
      while let (field, value) = try fields.next() {
        if field == 3 { isOver = value.number == CRIMessages.ContainerState.exited.rawValue }
        if field == 7 { code = value.number }
      }
      return isOver ? code : nil
    }
    return nil
  }

  /// Makes a request, and returns the first field of the answer, which is an id or a text.
  private func ask(
    _ call: String, _ write: @Sendable (inout ProtobufWriter) -> Void
  ) async throws -> String {
    var reader = ProtobufReader(try await answer(call, write)[...])
    while let (field, value) = try reader.next() {
      if field == 1 { return value.text }
    }
    return ""
  }

  private func answer(
    _ call: String, _ write: @Sendable (inout ProtobufWriter) -> Void
  ) async throws -> [UInt8] {
    let request = ProtobufWriter(write).bytes
    return try await CRIConnection.use(socket: socket, timeout: .seconds(90)) {
      connection throws(CRIError) in try await connection.call(call, request)
    }
  }
}
