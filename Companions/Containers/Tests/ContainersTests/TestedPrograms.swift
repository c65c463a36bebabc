import Foundation
import Testing

/// The programs that tests start, and their paths.
enum TestedPrograms {
  static let root = (0..<5).reduce(URL(filePath: #filePath)) { url, _ in
    url.deletingLastPathComponent()
  }.path

  /// The path in `DORMOUSE`, or else the debug build of this source tree.
  static let dormouse =
    ProcessInfo.processInfo.environment["DORMOUSE"] ?? "\(root)/.build/debug/dormouse"

  static var hasDormouse: Bool { FileManager.default.isExecutableFile(atPath: dormouse) }

  /// The program beside the tests' own executable.
  static let containers: String = {
    let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (path as NSString).deletingLastPathComponent + "/dormouse-containers"
  }()

  struct Outcome: Sendable {
    var code: Int32
    var output: String
  }

  /// Runs a program to its end.
  @discardableResult
  static func run(
    _ program: String, _ arguments: [String], _ environment: [String: String] = [:]
  ) throws -> Outcome {
    let process = try start(program, arguments, environment)
    let output = try process.pipe.fileHandleForReading.readToEnd() ?? Data()
    process.process.waitUntilExit()
    return Outcome(
      code: process.process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }

  static func start(
    _ program: String, _ arguments: [String], _ environment: [String: String] = [:]
  ) throws -> (process: Process, pipe: Pipe) {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let pipe = pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    return (process, pipe)
  }

  /// A pipe whose ends aren't inherited by programs that other tests start at the same time: a
  /// reader would wait for those. Foundation's `Process` closes only descriptors that were open
  /// when it checked.
  static func pipe() -> Pipe {
    let pipe = Pipe()
    for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
      _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    return pipe
  }

  /// A process that sleeps, as the first one of a container.
  static func sleeper() throws -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sleep")
    process.arguments = ["10000"]
    process.standardInput = FileHandle.nullDevice
    try process.run()
    return process
  }
}

/// A daemon without workers of its own; it ends with this object.
final class AdoptingTestDaemon {
  let scratch: ScratchDirectory
  var socket: String { "\(scratch.path)/control.sock" }
  private var process: Process?

  /// - Parameter policy: Keys of `policy_overrides`.
  init(_ policy: String = "background: { suspend_after: never }") throws {
    scratch = try ScratchDirectory()
    // The machine stalls now and then, and no test here is about pressure.
    let text = """
      policy: server
      policy_overrides:
        pressure: { warning: never, urgent: never, critical: { available_below: 1% } }
        \(policy)

      """
    try Data(text.utf8).write(to: URL(filePath: "\(scratch.path)/dormouse.yaml"))
    try start()
  }

  var logText: String {
    (try? String(contentsOfFile: "\(scratch.path)/log", encoding: .utf8)) ?? ""
  }

  func start() throws {
    let process = Process()
    process.executableURL = URL(filePath: TestedPrograms.dormouse)
    process.arguments = [
      "daemon", "--config", "\(scratch.path)/dormouse.yaml", "--socket", socket,
      "--state-directory", "\(scratch.path)/state",
    ]
    // There is no cgroup, which every machine permits; and a debug build measures its loop.
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["DORMOUSE_CGROUP": "/proc/nowhere", "DORMOUSE_LOOP_CHECK": "5s"]) { $1 }
    process.standardInput = FileHandle.nullDevice
    if !FileManager.default.fileExists(atPath: "\(scratch.path)/log") {
      guard FileManager.default.createFile(atPath: "\(scratch.path)/log", contents: nil) else {
        throw Failure("no log in \(scratch.path)")
      }
    }
    let log = FileHandle(forWritingAtPath: "\(scratch.path)/log")
    try log?.seekToEnd()
    process.standardOutput = log
    process.standardError = log
    try process.run()
    self.process = process
    let deadline = ContinuousClock.now + .seconds(60)
    while try ask("ps").code != 0 {
      if ContinuousClock.now > deadline || !process.isRunning {
        throw Failure("the daemon doesn't answer: \(logText)")
      }
      usleep(50_000)
    }
  }

  /// Kills the daemon by SIGKILL.
  func crash() {
    guard let process else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    self.process = nil
  }

  /// Ends the daemon, which releases its workers.
  func stop() {
    // If the daemon doesn't end by itself, it is ended below.
    _ = try? ask("shutdown")
    guard let process else { return }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    self.process = nil
  }

  @discardableResult
  func ask(_ arguments: String...) throws -> TestedPrograms.Outcome {
    try TestedPrograms.run(TestedPrograms.dormouse, arguments + ["--socket", socket])
  }

  struct Worker: Sendable {
    var name: String
    var state: String
    var pid: Int32
    var policy: String
    var footprint: Int64
  }

  func workers() throws -> [Worker] {
    let text = try ask("ps", "--json").output
    let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    return (report?["workers"] as? [[String: Any]] ?? []).map {
      Worker(
        name: $0["name"] as? String ?? "", state: $0["state"] as? String ?? "",
        pid: ($0["pid"] as? NSNumber)?.int32Value ?? 0, policy: $0["policy"] as? String ?? "",
        footprint: ($0["footprint"] as? NSNumber)?.int64Value ?? 0)
    }
  }

  func state(of name: String) throws -> String? { try workers().first { $0.name == name }?.state }

  func wait(for name: String, _ states: String...) async throws {
    guard try await eventually({ try state(of: name).map(states.contains) ?? false }) else {
      throw Failure("\(name) isn't \(states): \(try ask("ps").output) \(logText)")
    }
  }

  func hibernate(_ name: String) async throws {
    try await wait(for: name, "foreground", "background")
    // A connection may be too fresh. A request isn't refused for that, but may find a busy thread.
    let isAsleep = try await eventually {
      try ask("hibernate", name).code == 0 && state(of: name) == "hibernated"
    }
    if !isAsleep { throw Failure("\(name) doesn't hibernate: \(logText)") }
  }

  /// Waits for the record in which the next daemon finds the worker in this state.
  func waitForRecord(of name: String, state: String) async throws {
    // The daemon escapes dots.
    let file = name.replacing(".", with: "%2e")
    let path = "\(scratch.path)/state/workers/\(file).worker"
    let isThere = try await eventually {
      // The file doesn't exist until it is written.
      let text = try? String(contentsOfFile: path, encoding: .utf8)
      return text?.contains("\nstate=\(state)\n") ?? false
    }
    if !isThere { throw Failure("no record of \(name) as \(state)") }
  }

  deinit { stop() }
}
