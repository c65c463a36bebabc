import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

/// A python program with a pipe at its stdin, that can be stopped and continued.
final class Sleeper {
  let scratch: Scratch
  let process: SpawnedProcess
  let identity: ProcessIdentity
  /// The writing end of the pipe; nil once it has been closed.
  var stdin: Descriptor?
  var daemonSockets: Set<String> = []

  /// Returns when the program has printed `ready …`.
  init(_ program: String, environment: [String: String] = [:]) throws {
    scratch = try Scratch()
    let (input, writer) = try Descriptor.pipe()
    stdin = writer
    let log = "\(scratch.path)/log"
    let output = try Descriptor.open(log, O_RDWR | O_CREAT | O_APPEND, mode: 0o600)
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    guard let python = resolveExecutable("python3", path: path) else {
      throw TestFailure("no python3")
    }
    let helpers = "import os, socket, sys, threading, time\n"
    process = try spawn(
      SpawnRequest(
        path: python, arguments: ["python3", "-c", helpers + program],
        environment: environment.merging(["PATH": path]) { first, _ in first },
        directory: scratch.path, input: input.raw, output: output.raw, error: output.raw))
    identity = try ProcessIdentity.current(of: process.pid)
    guard try eventually({ try readText(log).contains("ready") }) else {
      throw TestFailure("it said: \(try readText(log))")
    }
  }

  deinit {
    try? ProcessTree.killAll(root: identity, session: process.pid)
    var status: Int32 = 0
    while waitpid(process.pid, &status, 0) < 0, errno == EINTR {}
  }

  var log: String { (try? readText("\(scratch.path)/log")) ?? "" }

  /// The number after `ready`.
  func port() throws -> UInt16 {
    let tokens = log.split { $0 == " " || $0 == "\n" }
    guard let index = tokens.firstIndex(of: "ready"), tokens.count > index + 1,
      let port = UInt16(tokens[index + 1])
    else { throw TestFailure("no port in \(log)") }
    return port
  }

  /// The bytes in the queues of its connections at the port: sent and not acknowledged, received
  /// and unread.
  private func queues(_ port: UInt16) throws -> [(unacknowledged: Int, unread: Int)] {
    let digits = String(port, radix: 16, uppercase: true)
    let local = ":" + String(repeating: "0", count: 4 - digits.count) + digits
    return try readText("/proc/net/tcp").split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ")
      guard fields.count > 4, fields[1].hasSuffix(local), fields[3] == "01" else { return nil }
      let sizes = fields[4].split(separator: ":").compactMap { Int($0, radix: 16) }
      return sizes.count == 2 ? (sizes[0], sizes[1]) : nil
    }
  }

  /// Returns when it has read everything that arrived at its port, and its clients' kernels have
  /// acknowledged everything that it sent.
  func waitForEmptyQueues() throws {
    let port = try port()
    let areEmpty = try eventually {
      try queues(port).allSatisfy { $0.unacknowledged == 0 && $0.unread == 0 }
    }
    if !areEmpty { throw TestFailure("queues at port \(port): \(try queues(port))") }
  }

  func threadCount() throws -> Int { try listDirectory("/proc/\(process.pid)/task").count }

  func tree() throws -> ProcessTree {
    try ProcessTree.discover(root: identity, session: process.pid)
  }

  func stop() throws {
    _ = try ProcessTree.stopAll(
      root: identity, session: process.pid, until: Deadline(in: .seconds(60)))
  }

  func resume() throws { try tree().continueAll() }

  /// The input that it left unread when it last slept.
  var unreadBaseline = UnreadInputBaseline()

  func stillUnread() throws -> UnreadInputBaseline {
    unreadBaseline.stillUnread(by: try tree(), daemonSockets: daemonSockets)
  }

  /// Stops the program and watches its inputs.
  func sleep(
    ignoring ignored: UnreadInputBaseline? = nil, openFor limit: Duration = WakeSources.recently
  ) throws -> WakeSources {
    let ignored = try ignored ?? stillUnread()
    try stop()
    let sources = try WakeSources(
      of: tree(), daemonSockets: daemonSockets, ignored: ignored, openFor: limit)
    unreadBaseline = sources.unreadBaseline
    return sources
  }

  /// Stops the program, which has no reason to wake.
  func sleepQuietly() throws -> WakeSources {
    let sources = try sleep()
    #expect(sources.waiting == nil)
    #expect(sources.nextReason() == nil)
    return sources
  }
}

extension Descriptor {
  /// Sends a line to `WakeSourcesTests.echo`, and gets it back.
  func expectEcho() throws {
    try writeAll("hello\n")
    #expect(try read(upTo: 64) == Array("hello\n".utf8))
  }
}

extension WakeSources {
  /// The reason that the sources report within 60 s; nil if there is none.
  func next() throws -> String? {
    let isReadable = try pollDescriptor(
      descriptor.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
    return isReadable ? nextReason() : nil
  }
}

/// A client of a test.
enum Client {
  static func connect(port: UInt16) throws -> Descriptor {
    let descriptor = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    guard attempt(descriptor, port) == 0 else {
      throw TestFailure("connect: \(String(cString: strerror(errno)))")
    }
    return descriptor
  }

  static func isRefused(port: UInt16) -> Bool {
    let descriptor = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    return attempt(descriptor, port) < 0 && errno == ECONNREFUSED
  }

  private static func attempt(_ descriptor: Descriptor, _ port: UInt16) -> Int32 {
    withLoopback(port) { Glibc.connect(descriptor.raw, $0, $1) }
  }

  static func sendDatagram(port: UInt16) throws {
    let descriptor = Descriptor(owning: socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
    let sent = withLoopback(port) { sendto(descriptor.raw, "hello", 5, 0, $0, $1) }
    guard sent == 5 else { throw TestFailure("sendto") }
  }

  static func connect(path: String) throws -> Descriptor {
    let descriptor = Descriptor(owning: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    let result = withUnixAddress(path) { Glibc.connect(descriptor.raw, $0, $1) }
    guard result == 0 else { throw TestFailure("connect \(path)") }
    return descriptor
  }
}
