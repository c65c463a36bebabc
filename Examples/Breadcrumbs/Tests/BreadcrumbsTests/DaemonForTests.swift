import Foundation
import Testing

/// How workers are stopped, and kept at rest while they are hibernated.
enum Setting: String, CaseIterable, CustomTestStringConvertible {
  /// Workers are frozen in cgroups, if the machine permits them.
  case frozen
  /// Workers are stopped by signals, and traced while they are hibernated.
  case traced

  var testDescription: String { rawValue }
}

/// `dormouse daemon` in a directory of its own. When it ends, it ends its workers.
final class DaemonProcess {
  struct WorkerReport: Decodable {
    struct Snapshot: Decodable { var text: String? }
    var state: String
    var pid: Int32?
    var snapshot: Snapshot?
  }

  struct JetsamReport: Decodable {
    struct Worker: Decodable {
      var name: String
      var footprint: Int64
      var victimBecause: Code?
    }
    struct Code: Decodable { var code: String }
    /// The code of a report, such as `no_report`.
    var code: String?
    var workers: [Worker]?
  }

  private let scratch = Result { try Scratch() }
  private let program: String
  private let socket: String
  private let log: String
  private let running: Running
  private var verbs = 0

  init(_ configuration: String, setting: Setting) throws {
    program = try #require(Programs.dormouse)
    let path = try scratch.get().path
    socket = "\(path)/control.sock"
    log = "\(path)/daemon.log"
    let file = "\(path)/dormouse.yaml"
    try configuration.write(toFile: file, atomically: false, encoding: .utf8)
    running = try Running(
      program,
      ["daemon", "--config", file, "--socket", socket, "--state-directory", "\(path)/state"],
      output: log, environment: setting == .traced ? ["DORMOUSE_CGROUP": "/proc/nowhere"] : [:])
    let answers = try eventually { try !running.process.isRunning || enter(["ps"]).code == 0 }
    guard answers, running.process.isRunning else { throw TestFailure("no daemon: \(logText)") }
  }

  deinit {
    running.process.terminate()
    running.wait(.seconds(30))
  }

  /// The daemon's log.
  var logText: String {
    // The log is only for messages, so an unreadable one doesn't matter.
    (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
  }

  private func enter(_ arguments: [String]) throws -> (code: Int32, output: String) {
    verbs += 1
    let output = "\(try scratch.get().path)/\(verbs).out"
    let code = try Running(
      program, arguments.prefix(1) + ["--socket", socket] + arguments.dropFirst(), output: output
    ).wait()
    return (code, try String(contentsOfFile: output, encoding: .utf8))
  }

  /// Runs a verb that must succeed, and returns its output.
  @discardableResult
  func done(_ arguments: String...) throws -> String {
    let outcome = try enter(arguments)
    guard outcome.code == 0 else { throw TestFailure("\(arguments): \(outcome); \(self.logText)") }
    return outcome.output
  }

  func worker(_ name: String) throws -> WorkerReport {
    try JSONDecoder().decode(WorkerReport.self, from: Data(done("status", name, "--json").utf8))
  }

  func jetsam() throws -> JetsamReport {
    try JSONDecoder().decode(JetsamReport.self, from: Data(done("jetsam", "--json").utf8))
  }

  func wait(_ name: String, toBe state: String) throws {
    guard try eventually({ try worker(name).state == state }) else {
      throw TestFailure("\(name) is \(try worker(name).state), not \(state): \(logText)")
    }
  }
}
