import Glibc
import Testing

@testable import Linux

/// A program's stdin and stdout, line by line.
final class Talk {
  private let input: Descriptor?
  private let output: Descriptor
  private let name: String
  private var buffered: [UInt8] = []

  init(input: Descriptor?, output: Descriptor, name: String) {
    self.input = input
    self.output = output
    self.name = name
  }

  /// The number of seconds that a program's answer may take, more on an emulated machine.
  static let timeout =
    getenv("DORMOUSE_TEST_PATIENCE").flatMap { Int64(String(cString: $0)) } ?? 60

  /// Closes the program's output.
  func close() throws {
    let null = try Descriptor.open("/dev/null")
    _ = try systemCall("dup2") { dup2(null.raw, output.raw) }
  }

  func send(_ line: String) throws { try input?.writeAll(line + "\n") }

  /// Returns one line, without its end. It fails the test after `timeout`.
  func line() throws -> String {
    let deadline = Deadline(in: .seconds(Self.timeout))
    while true {
      if let end = buffered.firstIndex(of: 10) {
        let line = String(decoding: buffered[..<end], as: UTF8.self)
        buffered.removeFirst(end + 1)
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
      }
      try #require(try readMore(until: deadline), "\(name) has closed its output")
    }
  }

  /// Waits for output and keeps it; false at its end.
  private func readMore(until deadline: Deadline) throws -> Bool {
    try #require(
      try pollDescriptor(output.raw, for: POLLIN, until: deadline),
      "neither a line nor an end of \(name) in \(Self.timeout) s")
    let bytes = try output.read(upTo: 65536)
    buffered += bytes
    return !bytes.isEmpty
  }

  /// Returns what the program still says until its output is closed, at its end.
  func untilEnd() throws -> String {
    let deadline = Deadline(in: .seconds(Self.timeout))
    while try readMore(until: deadline) {}
    defer { buffered = [] }
    return String(decoding: buffered, as: UTF8.self)
  }

  /// True if there is output that hasn't been read yet.
  var hasSome: Bool {
    get throws {
      if !buffered.isEmpty { return true }
      return try pollDescriptor(output.raw, for: POLLIN, until: Deadline(in: .milliseconds(5)))
    }
  }

  /// Reads exactly that many bytes.
  func bytes(_ count: Int) throws -> String {
    let deadline = Deadline(in: .seconds(Self.timeout))
    while buffered.count < count {
      try #require(try readMore(until: deadline), "\(name) has closed its output")
    }
    defer { buffered.removeFirst(count) }
    return String(decoding: buffered[..<count], as: UTF8.self)
  }

  func ask(_ line: String) throws -> String {
    try send(line)
    return try self.line()
  }
}
