import AsyncHTTPClient
import Control
import JSONLines
import NIOCore
import NIOHTTP1

/// The few calls of the Kubernetes API that are made here.
public struct KubernetesClient: Sendable {
  private let access: KubernetesAccess
  private let http: HTTPClient
  private let timeout: Duration

  /// The maximum length of an answer in bytes.
  static let maxBytes = 8 << 20
  /// The name that the API records as the author of a change.
  static let fieldManager = "dormouse-containers"

  public init(
    _ access: KubernetesAccess, http: HTTPClient, timeout: Duration = .seconds(10)
  ) {
    self.access = access
    self.http = http
    self.timeout = timeout
  }

  public func pod(_ pod: PodReference) async throws(KubernetesError) -> PodRecord {
    try record(try await call(.GET, Self.path(pod), body: nil))
  }

  /// Changes `status` and `metadata`.
  public func patchStatus(
    of pod: PodReference, _ patch: PodPatch
  ) async throws(KubernetesError) -> PodRecord {
    try record(try await call(.PATCH, Self.path(pod) + "/status", body: patch.json))
  }

  /// Changes the resources of containers.
  public func resize(
    _ pod: PodReference, _ patch: PodPatch
  ) async throws(KubernetesError) -> PodRecord {
    try record(try await call(.PATCH, Self.path(pod) + "/resize", body: patch.json))
  }

  public func create(_ event: KubernetesEvent) async throws(KubernetesError) {
    _ = try await call(.POST, Self.events(event.pod.namespace), body: event.json)
  }

  /// Records that the event has happened again.
  public func repeated(_ event: KubernetesEvent) async throws(KubernetesError) {
    let path = Self.events(event.pod.namespace) + "/" + Self.escaped(event.name)
    _ = try await call(.PATCH, path, body: event.repetition)
  }

  // MARK: -

  private static func path(_ pod: PodReference) -> String {
    "/api/v1/namespaces/\(escaped(pod.namespace))/pods/\(escaped(pod.name))"
  }

  private static func events(_ namespace: String) -> String {
    "/api/v1/namespaces/\(escaped(namespace))/events"
  }

  /// Escapes a name for a path. Names come from the runtime, and one with a slash must not become
  /// another path.
  private static func escaped(_ name: String) -> String {
    let isPlain = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
        true
      default: false
      }
    }
    return isPlain && !name.isEmpty && name != "." && name != ".." ? name : "_"
  }

  private func record(_ json: JSON) throws(KubernetesError) -> PodRecord {
    guard let record = PodRecord(json) else { throw .malformed("not a pod") }
    return record
  }

  private func call(
    _ method: HTTPMethod, _ path: String, body: JSON?
  ) async throws(KubernetesError) -> JSON {
    var request = HTTPClientRequest(
      url: access.url + path + (body == nil ? "" : "?fieldManager=\(Self.fieldManager)"))
    request.method = method
    request.headers.add(name: "Accept", value: "application/json")
    request.headers.add(name: "User-Agent", value: "dormouse-containers/\(Dormouse.version)")
    if let token = try access.token() {
      request.headers.add(name: "Authorization", value: "Bearer \(token)")
    }
    if let body {
      request.headers.add(
        name: "Content-Type",
        value: method == .PATCH
          ? "application/strategic-merge-patch+json" : "application/json")
      request.body = .bytes(ByteBuffer(bytes: body.line))
    }
    do {
      let response = try await http.execute(
        request, timeout: .nanoseconds(Int64(timeout / .nanoseconds(1))))
      let bytes = Array(
        (try await response.body.collect(upTo: Self.maxBytes)).readableBytesView)
      guard (200..<300).contains(response.status.code) else {
        throw KubernetesError.status(
          Int(response.status.code), Self.message(bytes), after: Self.delay(response.headers))
      }
      guard let json = JSON(bytes) else { throw KubernetesError.malformed("not JSON") }
      return json
    } catch { throw failure(error) }
  }

  /// Returns the message of a `Status` object.
  private static func message(_ body: [UInt8]) -> String {
    let text = JSON(body)?["message"]?.text ?? String(decoding: body.prefix(200), as: UTF8.self)
    return Control.escaped(String(text.prefix(400)))
  }

  private static func delay(_ headers: HTTPHeaders) -> Duration? {
    guard let seconds = headers.first(name: "Retry-After").flatMap(Int64.init), seconds >= 0 else {
      return nil
    }
    return .seconds(min(seconds, 300))
  }

  private func failure(_ error: any Error) -> KubernetesError {
    switch error {
    case let error as KubernetesError: error
    case let error as HTTPClientError
    where error == .deadlineExceeded || error == .readTimeout || error == .connectTimeout:
      .timedOut(timeout)
    case is NIOTooManyBytesError: .tooLong(Self.maxBytes)
    default: .unreachable(Control.escaped(String("\(error)".prefix(300))))
    }
  }
}
