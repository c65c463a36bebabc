import AsyncHTTPClient
import Foundation
import Synchronization
import Testing

@testable import Containers

struct Failure: Error, CustomStringConvertible {
  var description: String
  init(_ text: String) { description = text }
}

/// A directory that is removed with this object.
final class ScratchDirectory: Sendable {
  let path: String

  init() throws {
    var template = Array("/tmp/dormouse-containers.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("mkdtemp: errno \(errno)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // A directory that can't be removed stays in /tmp.
    try? FileManager.default.removeItem(atPath: path)
  }
}

/// Calls `body` until it is true, for at most `limit`.
func eventually(
  within limit: Duration = .seconds(60), _ body: () async throws -> Bool
) async throws -> Bool {
  let deadline = ContinuousClock.now + limit
  repeat {
    if try await body() { return true }
    try await Task.sleep(for: .milliseconds(50))
  } while ContinuousClock.now < deadline
  return false
}

/// The lines that were logged.
final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])

  func add(_ line: String) { lines.withLock { $0.append(line) } }
  var all: [String] { lines.withLock { $0 } }
  func count(_ text: String) -> Int { all.count { $0.contains(text) } }

  func wait(for text: String, count: Int = 1) async throws {
    guard try await eventually({ self.count(text) >= count }) else {
      throw Failure("not logged: \(text); but \(all)")
    }
  }
}

/// A watch that runs until this object ends.
final class RunningWatch: Sendable {
  let log = LogLines()
  private let http: HTTPClient
  private let task: Task<Void, Never>

  init(_ settings: WatchSettings) {
    let http = HTTPClient(eventLoopGroupProvider: .singleton)
    self.http = http
    let watch = ContainerWatch(settings, http: http) { [log] in log.add($0) }
    task = Task { await watch.run() }
  }

  func end() async throws {
    task.cancel()
    await task.value
    try await http.shutdown()
  }

  static func settings(_ engine: FakeEngine, daemon: String) -> WatchSettings {
    var settings = WatchSettings(
      runtimes: [Runtime(name: "docker", socket: engine.socket)], socket: daemon)
    settings.daemonInterval = .milliseconds(300)
    settings.retry = RetryDelays(first: .milliseconds(50), longest: .milliseconds(200))
    // The tests' processes live in no container.
    settings.isContained = { kill($0, 0) == 0 ? true : nil }
    return settings
  }
}
