import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The hibernator's operations, each performed before its function returns.
extension HibernationService {
  @discardableResult
  func hibernate(_ request: HibernationRequest) throws(HibernationError) -> HibernationSummary {
    try wait { (h) throws(HibernationError) in try h.hibernate(request) }
  }

  @discardableResult
  func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool = false,
    recorded: @escaping @Sendable () -> String? = { nil }
  ) throws(HibernationError) -> ResumeSummary {
    try wait { (h) throws(HibernationError) in
      try h.resume(target, from: image, keepsBase: keepsBase, recorded: recorded)
    }
  }

  @discardableResult
  func recover(
    _ target: HibernationTarget, from path: String, expecting: ImageExpectation = .unknown(),
    keepsTrims: Bool = false
  ) throws(HibernationError) -> ResumeSummary {
    try wait { (h) throws(HibernationError) in
      try h.recover(target, from: path, expecting: expecting, keepsTrims: keepsTrims)
    }
  }

  @discardableResult
  func trim(_ request: TrimRequest) throws(HibernationError) -> TrimSummary {
    try wait { (h) throws(HibernationError) in try h.trim(request) }
  }
}

extension Victim {
  /// Suspends and hibernates the program.
  @discardableResult
  func sleep(
    _ service: HibernationService, at path: String, restore: ResumePreference = .eager,
    overlay: Bool = false, sealed: Bool = false, dropsFilePages: Bool = false
  ) throws -> HibernationSummary {
    try suspend()
    return try service.hibernate(
      HibernationRequest(
        target, to: path, restore: restore, overlay: overlay, isSealed: sealed,
        dropsFilePages: dropsFilePages))
  }

  /// Suspends and hibernates the program. Returns the path of its image.
  func sleep(_ service: HibernationService) throws -> String {
    let path = Fixture.imagePath()
    try sleep(service, at: path)
    return path
  }

  func wake(
    _ service: HibernationService, from path: String, keepsBase: Bool = false,
    masters: PreforkMasters = PreforkMasters()
  ) throws {
    var target = target
    target.masters = masters
    try service.resume(target, from: RestingImage(path: path), keepsBase: keepsBase)
  }

  /// Hibernates and resumes the program.
  @discardableResult
  func cycle(_ service: HibernationService) throws -> HibernationSummary {
    let path = Fixture.imagePath()
    let summary = try sleep(service, at: path)
    try wake(service, from: path)
    return summary
  }

  /// Returns the error of a hibernation that is refused or fails.
  func refusal(
    _ service: HibernationService, at path: String = Fixture.imagePath(), overlay: Bool = false
  ) throws -> HibernationError {
    try #require(
      #expect(throws: HibernationError.self) { try sleep(service, at: path, overlay: overlay) })
  }

  /// Lets a suspended worker run.
  func carryOn() throws { try target.wake() }

  /// True if the program is frozen, or every process is stopped.
  var isSuspended: Bool {
    get throws {
      if let cgroup { return try cgroup.isFrozen }
      // A thread that isn't traced any more needs a moment until it is stopped again.
      target.waitForStops()
      return try target.discover().processes.allSatisfy { $0.state == .stopped }
    }
  }

  /// Waits until the program is in a system call other than the write of its `ready` line.
  func waitUntilBlocked() throws {
    #if arch(x86_64)
      let write: Int32 = 1
    #else
      let write: Int32 = 64
    #endif
    let isBlocked = try eventually {
      let text = try readText("/proc/\(process.pid)/syscall")
      let number = text.split(separator: " ").first.map(String.init) ?? "running"
      return Int32(number).map { $0 != write } ?? false
    }
    if !isBlocked { Issue.record("pid \(process.pid) doesn't block") }
  }
}

/// An HTTP connection that stays open.
struct HTTPConnection {
  private let talk: Talk

  init(port: Int) throws { talk = try Talk(connectedTo: port) }

  func get(_ path: String, method: String = "GET") throws -> String {
    try talk.send("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r")
    var length = 0
    try #require(try talk.line().hasSuffix("200 OK"))
    while case let line = try talk.line(), !line.isEmpty {
      if line.lowercased().hasPrefix("content-length: ") { length = Int(line.dropFirst(16)) ?? 0 }
    }
    return try String(talk.bytes(length).dropLast())
  }
}

extension Talk {
  /// Connects to a port of this machine.
  convenience init(connectedTo port: Int) throws {
    let socket = Descriptor(
      owning: try systemCall("socket") {
        Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      })
    _ = try systemCall("connect", on: "port \(port)") {
      withLoopback(UInt16(port)) { connect(socket.raw, $0, $1) }
    }
    self.init(input: socket, output: socket, name: "port \(port)")
  }

  /// Connects to a Unix socket.
  convenience init(connectedTo path: String) throws {
    let socket = Descriptor(
      owning: try systemCall("socket") {
        Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      })
    _ = try systemCall("connect", on: path) {
      withUnixAddress(path) { connect(socket.raw, $0, $1) }
    }
    self.init(input: socket, output: socket, name: path)
  }
}

/// Programs that may be installed on a machine.
enum Program {
  /// The directories to search. The distribution's come first: version managers put shell scripts
  /// in front of them.
  static let path: String = {
    let tools = Fixture.directory.split(separator: "/").dropLast(2).reduce("") { $0 + "/" + $1 }
    let parking = getenv("PATH").map { String(cString: $0) } ?? ""
    return "/usr/bin:/bin:\(tools)/.build/tools:\(parking)"
  }()

  static func find(_ name: String) -> String? { resolveExecutable(name, path: path) }
}
