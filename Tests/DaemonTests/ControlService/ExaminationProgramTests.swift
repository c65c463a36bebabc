import Control
import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("What a daemon can do itself, asked by `doctor`") struct ExaminationProgramTests {
  private static let report = DoctorReport(
    version: "1.2.3", kernel: "6.18.0", user: 1000, checks: [], trial: nil,
    verdict: CodedText("hibernation_missing", "Hibernation doesn't work here."))

  private func program(_ script: String) -> ExaminationProgram {
    ExaminationProgram(path: "/bin/sh", arguments: ["sh", "-c", script], environment: ["A": "b"])
  }

  @Test func `An examination's report is what the program prints`() throws {
    let text = String(decoding: try WireCodec.json(for: JSONDocument(Self.report)), as: UTF8.self)
    #expect(program("cat << 'END'\n\(text)\nEND\n").run() == .success(Self.report))
  }

  @Test func `A program that prints no report, or can't be started, fails`() throws {
    for script in ["exit 3", "echo nonsense", "echo '{}'"] {
      guard case .failure(.unreadable(let reason)) = program(script).run() else {
        Issue.record("\(script) was read")
        continue
      }
      #expect(!reason.isEmpty)
    }
    let missing = ExaminationProgram(path: "/nowhere/at/all", arguments: ["x"], environment: [:])
    guard case .failure(.notStarted(let reason)) = missing.run() else {
      Issue.record("it was started")
      return
    }
    #expect(reason.contains("/nowhere/at/all"))
  }

  @Test func `A program that outlives its deadline is ended, and the examination fails`() throws {
    let scratch = try Scratch()
    var program = program("echo $$ > '\(scratch.path)/pid'; exec sleep 1000")
    // The time is long enough for the shell to write its pid on a busy machine.
    program.timeout = .seconds(12)
    #expect(program.run() == .failure(.overdue))
    let text = try readText("\(scratch.path)/pid")
    let pid = try #require(Int32(text.prefix { $0 != "\n" }))
    #expect(try eventually { (try? ProcessStat.read(pid))?.isEnded ?? true })
  }

  @Test func `An examination that hangs is answered at its limit, and blocks nothing`() throws {
    let loop = try EventLoop(check: nil)
    let gate = ThreadGate()
    defer { gate.open() }
    let examination = CoalescedProbe<ExaminationProgram.Outcome>(
      try LoopJobs(loop, .forTest), about: "doctor", within: .milliseconds(50)
    ) {
      {
        gate.pass()
        return .success(Self.report)
      }
    }
    var answer: ExaminationProgram.Outcome??
    examination.ask { answer = $0 }
    #expect(answer == nil)
    try loop.turn { answer != nil }
    #expect(answer == .some(nil))
  }

  @Test func `The verb doctor is answered with the examination, or with the reason`() throws {
    let control = try ControlWorld()
    let failed = control.ask(.doctor)
    #expect(failed.responses.isEmpty)
    let failure = try control.only(failed)
    #expect(failure.result == .failed && failure.doctor == nil && failure.text.contains("in time"))
    try control.world.add("web", .hibernated)
    control.examined.outcome.withLock { $0 = .success(Self.report) }
    let response = try control.only(control.ask(.doctor))
    #expect(response.result == .done && response.doctor?.report == Self.report)
    #expect(response.text == Self.report.verdict.text)
    let context = try #require(response.doctor?.context)
    #expect(context.hibernated == 1 && context.freezer.code == "sigstop")
    #expect(context.user == Self.report.user && context.hibernation.code == "enabled")
    #expect(context.pid == getpid())
    let status = try ProcessStatus.read(getpid())
    #expect(context.capabilities == status.capabilityNames)
    #expect(context.capabilities.count == status.effectiveCapabilities.nonzeroBitCount)
  }
}
