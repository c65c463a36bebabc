import Foundation
import Testing

/// `consume` with commands at its standard input.
private final class Running {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var received = ""

  init(_ arguments: [String] = []) throws {
    // The program is beside the test's executable, where SwiftPM builds both.
    let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    process.executableURL = URL(filePath: path).deletingLastPathComponent()
      .appending(path: "consume")
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }

  /// Sends a command, and returns the answer of one line.
  func ask(_ command: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
    return try #require(line(), "\(command)")
  }

  func line() -> String? {
    while true {
      if let end = received.firstIndex(of: "\n") {
        defer { received = String(received[received.index(after: end)...]) }
        return String(received[..<end])
      }
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { return nil }
      received += String(decoding: data, as: UTF8.self)
    }
  }

  func warnBySignal() { kill(process.processIdentifier, SIGUSR1) }

  func exitCode() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }
}

extension String {
  /// The number before ` MB` at the end of an answer.
  fileprivate var megabytes: Double? {
    guard hasSuffix(" MB") else { return nil }
    return split(separator: " ").dropLast().last.flatMap { Double($0) }
  }
}

@Suite("consume", .timeLimit(.minutes(2))) struct ConsumeTests {
  @Test("Each warning, by command or signal, brings the footprint back to within 1 MB of the start")
  func warned() throws {
    let consume = try Running()
    let start = try #require(consume.ask("footprint").megabytes)
    for round in 1...3 {
      let full = try #require(consume.ask("consume 24").megabytes)
      #expect(full >= start + 24)
      let answer: String
      if round == 2 {
        consume.warnBySignal()
        answer = try #require(consume.line())
      } else {
        answer = try consume.ask("warn")
      }
      #expect(answer.hasPrefix("warned: 2") && answer.contains("; 0 objects, "), "\(answer)")
      #expect(try #require(consume.ask("footprint").megabytes) <= start + 1)
    }
    #expect(try consume.ask("consume 2").hasPrefix("consumed 2; 2 objects"))
    #expect(try consume.ask("drop").hasPrefix("dropped; 0 objects"))
    #expect(try consume.ask("dance").hasPrefix("consume: commands are "))
  }

  @Test("With wrong arguments `consume` prints its usage and exits with 64")
  func wrongArguments() throws {
    let consume = try Running(["--steps", "many"])
    #expect(consume.line()?.hasPrefix("usage: consume") == true)
    #expect(consume.exitCode() == 64)
  }
}
