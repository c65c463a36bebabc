import Foundation
import Glibc
import Testing

struct TestFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A directory of a test's own, which is removed with its content.
final class Scratch: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/breadcrumbs-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch {
      print("\(path) stays: \(error)")
    }
  }
}

enum Programs {
  /// The program is beside the test's executable, where SwiftPM builds both.
  static let breadcrumbs = {
    let path =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]  // without /proc
    return URL(filePath: path).deletingLastPathComponent().appending(path: "Breadcrumbs").path()
  }()

  /// The program that DORMOUSE names, or the debug build in the repository; nil if there is none.
  static let dormouse: String? = {
    var repository = URL(filePath: #filePath)
    for _ in 0..<5 { repository.deleteLastPathComponent() }
    let path =
      ProcessInfo.processInfo.environment["DORMOUSE"]
      ?? repository.appending(path: ".build/debug/dormouse").path()
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
  }()
}

/// A program of a test. Its output is written to a file.
final class Running {
  let process = Process()

  init(
    _ program: String, _ arguments: [String], output: String, environment: [String: String] = [:]
  ) throws {
    if !FileManager.default.fileExists(atPath: output) {
      _ = FileManager.default.createFile(atPath: output, contents: nil)
    }
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle(forWritingAtPath: output)
    process.standardError = process.standardOutput
    try process.run()
  }

  /// Waits for the end, and returns the exit code. It sends SIGTERM after `limit`, and SIGKILL 10 s
  /// after that.
  @discardableResult
  func wait(_ limit: Duration = .seconds(60)) -> Int32 {
    if !eventually(within: limit, { !process.isRunning }) { process.terminate() }
    if !eventually(within: .seconds(10), { !process.isRunning }) {
      kill(process.processIdentifier, SIGKILL)
    }
    process.waitUntilExit()
    return process.terminationStatus
  }
}

/// Waits for a condition that causes no event.
func eventually(
  within limit: Duration = .seconds(30), _ condition: () throws -> Bool
) rethrows -> Bool {
  let end = ContinuousClock.now + limit
  while ContinuousClock.now < end {
    if try condition() { return true }
    usleep(3000)
  }
  return try condition()
}

/// One TCP connection, which is never opened again: the process that accepted it answers on it.
final class Connection {
  private let socket: Int32
  private var received: [UInt8] = []

  init(port: UInt16) throws {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard withLoopback(port, { connect(socket, $0, $1) }) == 0 else {
      throw TestFailure("no connection to port \(port): errno \(errno)")
    }
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(
      socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(socket) }

  func page(_ path: String) throws -> String { try ask("GET", path, "") }
  func post(_ path: String, _ body: String = "") throws -> String { try ask("POST", path, body) }

  private func ask(_ method: String, _ path: String, _ body: String) throws -> String {
    let head =
      "\(method) \(path) HTTP/1.1\r\nHost: test\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
    let request = Array((head + body).utf8)
    guard send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      throw TestFailure("\(path) could not be sent: errno \(errno)")
    }
    while true {
      if let answer = nextBody() { return answer }
      var chunk = [UInt8](repeating: 0, count: 65_536)
      let count = recv(socket, &chunk, chunk.count, 0)
      guard count > 0 else { throw TestFailure("no answer to \(path): errno \(errno)") }
      received += chunk[..<count]
    }
  }

  private func nextBody() -> String? {
    let blank = Array("\r\n\r\n".utf8)
    guard let end = received.indices.first(where: { received[$0...].starts(with: blank) }) else {
      return nil
    }
    // A CR LF is one Character.
    let lines = String(decoding: received[..<end], as: UTF8.self).split(separator: "\r\n")
    let name = "Content-Length: "
    guard let line = lines.first(where: { $0.hasPrefix(name) }),
      let length = Int(line.dropFirst(name.count)), received.count >= end + 4 + length
    else { return nil }
    defer { received.removeFirst(end + 4 + length) }
    return String(decoding: received[(end + 4)..<(end + 4 + length)], as: UTF8.self)
  }
}

func withLoopback(
  _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
) -> Int32 {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// A free port below those that the kernel gives to clients.
func freePort() throws -> UInt16 {
  for _ in 0..<1000 {
    let port = UInt16.random(in: 12_000..<32_000)
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    if withLoopback(port, { bind(socket, $0, $1) }) == 0 { return port }
  }
  throw TestFailure("no free port")
}
