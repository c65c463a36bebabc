import AsyncHTTPClient
import ContainerPlan
import Control
import JSONLines
import NIOCore
import NIOHTTP1

/// The Engine API over a Unix socket: a list, details, events. Without a version in the path each
/// runtime answers in its newest one. All of them have the fields that are read here.
struct EngineClient: RuntimeClient {
  let runtime: Runtime
  private let http: HTTPClient
  private let timeout: Duration

  /// The maximum length of an answer in bytes.
  static let maxBytes = 32 << 20

  init(_ runtime: Runtime, _ http: HTTPClient, timeout: Duration = .seconds(10)) {
    self.runtime = runtime
    self.http = http
    self.timeout = timeout
  }

  /// Returns the running and paused containers whose labels concern Dormouse. Without a filter
  /// Podman leaves out paused ones.
  func containers() async throws(EngineError) -> [Container] {
    // The filter is {"status":["running","paused"]}.
    let filters = "%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D"
    let listed = try await get(
      [EngineMessages.Listed].self, "/containers/json?filters=\(filters)")
    var containers: [Container] = []
    var images: [String: [String: String]] = [:]
    for each in listed {
      guard each.labels?.keys.contains(where: { $0.hasPrefix(LabelReading.prefix) }) == true else {
        continue
      }
      if let container = try await container(each.id, &images) { containers.append(container) }
    }
    return containers
  }

  /// Returns a container; nil if it doesn't exist or run any more.
  ///
  /// - Parameter images: The labels of images that were asked for before.
  private func container(
    _ id: String, _ images: inout [String: [String: String]]
  ) async throws(EngineError) -> Container? {
    do throws(EngineError) {
      let inspected = try await get(EngineMessages.Inspected.self, "/containers/\(id)/json")
      guard var container = Container(inspected, runtime: runtime.name) else { return nil }
      // The start time is read at once, while the runtime has just reported that the container
      // runs.
      container.startTime = ContainerWatch.startTime(container.pid)
      container.imageLabels = try await labels(ofImage: inspected.image, &images)
      return container
    } catch {
      // The container has ended since it was listed.
      if case .status(404, _) = error { return nil }
      throw error
    }
  }

  /// Returns the labels of an image; nil if the runtime doesn't have the image any more.
  private func labels(
    ofImage id: String?, _ images: inout [String: [String: String]]
  ) async throws(EngineError) -> [String: String]? {
    guard let id, !id.isEmpty else { return nil }
    if let labels = images[id] { return labels }
    do throws(EngineError) {
      let image = try await get(EngineMessages.Image.self, "/images/\(id)/json")
      images[id] = image.settings?.labels ?? [:]
    } catch .status(404, _) { return nil }
    return images[id]
  }

  /// Calls back when the stream has begun, and for each event that may matter. It returns only by
  /// throwing an error.
  func followEvents(
    opened: @escaping @Sendable () async -> Void, changed: @escaping @Sendable () async -> Void
  ) async throws(EngineError) {
    // The filter is {"type":["container"]}.
    let filters = "%7B%22type%22%3A%5B%22container%22%5D%7D"
    let response = try await answer("/events?filters=\(filters)", body: nil)
    await opened()
    var framer = LineFramer()
    do {
      for try await chunk in response.body {
        framer.append(chunk.readableBytesView)
        while let line = try framer.next() {
          // A line that can't be read may have been a change.
          let event = try? WireCodec.decode(EngineMessages.Event.self, from: line)
          if event?.matters ?? !line.isEmpty { await changed() }
        }
      }
    } catch is LineFramer.Overflow {
      throw .tooLong(LineFramer.defaultMaximumLength)
    } catch { throw Self.failure(error, timeout) }
    throw .closed
  }

  private func get<Value: Decodable & Sendable>(
    _ type: Value.Type, _ path: String
  ) async throws(EngineError) -> Value {
    let response = try await answer(path, body: timeout)
    let bytes: [UInt8]
    do {
      bytes = Array((try await response.body.collect(upTo: Self.maxBytes)).readableBytesView)
    } catch is NIOTooManyBytesError { throw .tooLong(Self.maxBytes) } catch {
      throw Self.failure(error, timeout)
    }
    do { return try WireCodec.decode(type, from: bytes) } catch {
      throw .malformed("\(path): \(error)")
    }
  }

  /// - Parameter body: The timeout of the whole answer; nil if it has none.
  private func answer(
    _ path: String, body: Duration?
  ) async throws(EngineError) -> HTTPClientResponse {
    var request = HTTPClientRequest(url: "http+unix://\(Self.escaped(runtime.socket))\(path)")
    request.headers.add(name: "Host", value: "localhost")
    do {
      let response: HTTPClientResponse
      if let body {
        response = try await http.execute(request, timeout: .nanoseconds(body.wholeNanoseconds))
      } else {
        response = try await http.execute(request, deadline: .distantFuture)
      }
      guard response.status == .ok else {
        // Without a readable body the status is the only information.
        let text = try? await response.body.collect(upTo: 1 << 16)
        throw EngineError.status(
          Int(response.status.code), Self.message(text.map { Array($0.readableBytesView) } ?? []))
      }
      return response
    } catch { throw Self.failure(error, timeout) }
  }

  /// Returns the message of a body such as `{"message": "no such container"}`.
  private static func message(_ body: [UInt8]) -> String {
    struct Refusal: Decodable { var message: String }
    // Another kind of body is shown as it is.
    let text =
      (try? WireCodec.decode(Refusal.self, from: body).message)
      ?? String(decoding: body.prefix(200), as: UTF8.self)
    return Control.escaped(text)
  }

  private static func failure(_ error: any Error, _ timeout: Duration) -> EngineError {
    switch error {
    case let error as EngineError: return error
    case let error as HTTPClientError where error == .deadlineExceeded || error == .readTimeout:
      return .timedOut(timeout)
    case let error as HTTPClientError where error == .remoteConnectionClosed: return .closed
    case let error as HTTPParserError where error == .invalidEOFState: return .closed
    case let error as IOError: return .unreachable(Self.text(error))
    case let error as HTTPParserError: return .malformed("\(error)")
    default: return .unreachable("\(error)")
    }
  }

  private static func text(_ error: IOError) -> String {
    switch error.errnoCode {
    case 2: "there is no such socket"
    case 111: "no process listens there"
    case 13: "permission denied"
    default: "errno \(error.errnoCode)"
    }
  }

  /// Returns a path in the form of a URL's host.
  private static func escaped(_ path: String) -> String {
    var result = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return result
  }
}

extension Duration {
  var wholeNanoseconds: Int64 {
    components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
  }
}
