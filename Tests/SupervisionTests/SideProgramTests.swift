import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite("Programs beside a worker") struct SideProgramTests {
  private func plan(_ scratch: Scratch) -> LaunchPlan {
    LaunchPlan(
      name: "test", command: ["true"], directory: scratch.path,
      environment: ["PATH": "/usr/bin:/bin"], logPath: "\(scratch.path)/log")
  }

  @Test(
    "A program whose file system doesn't answer blocks no process, and the error says what hangs")
  func hungPreparation() throws {
    let scratch = try Scratch()
    let (gate, jobs, plan) = (
      ThreadGate(), JobPool(name: "test", maxOrdinary: 256, endsAfter: .seconds(5)), plan(scratch)
    )
    defer { gate.open() }
    let program = SideProgram(about: "test", jobs: jobs) { () throws(LaunchError) in
      gate.pass()
      return try plan.prepareBeside(["true"], pid: 1, keepsOutput: true)
    }
    program.proceed()
    #expect(program.phase == .preparing)
    #expect(program.hang?.contains("check their file system") == true)

    // The next program is refused, and needs no thread.
    let second = SideProgram(about: "test", jobs: jobs) { () throws(LaunchError) in
      throw .noCommand
    }
    guard case .failed(let error) = second.phase else {
      Issue.record("\(second.phase)")
      return
    }
    #expect(error.description.contains("still waits for a file system"))
    program.cancel()
    #expect(program.phase == .cancelled)
    #expect(program.isOver)
  }

  @Test(
    "A side program is prepared, started and followed to its end, and ended when it is dropped")
  func phases() throws {
    let scratch = try Scratch()
    let plan = plan(scratch)
    var program: SideProgram? = SideProgram(about: "phases") { () throws(LaunchError) in
      try plan.prepareBeside(
        ["sh", "-c", "sleep 77 & echo $! >child; wait"], pid: 1, keepsOutput: true)
    }
    try program?.follow { $0 == .running }
    var child: Int32?
    #expect(
      try eventually {
        child = (try? readText("\(scratch.path)/child")).flatMap { Int32($0.prefix { $0 != "\n" }) }
        return child != nil
      })
    let identity = try ProcessIdentity.current(of: try #require(child))
    program = nil
    #expect(try eventually { identity.hasEnded })

    let short = SideProgram(about: "phases") { () throws(LaunchError) in
      try plan.prepareBeside(["sh", "-c", "exit 3"], pid: 1, keepsOutput: false)
    }
    try short.follow()
    #expect(short.phase == .ended(.exited(3)))
    #expect(short.hang == nil)
  }

  @Test("A side program that something else has reaped counts as ended, and is watched no longer")
  func reapedElsewhere() throws {
    let scratch = try Scratch()
    let plan = plan(scratch)
    let program = SideProgram(about: "reaped") { () throws(LaunchError) in
      try plan.prepareBeside(["sleep", "60"], pid: 1, keepsOutput: false)
    }
    try program.follow { $0 == .running }
    let pid = try #require(program.pid)
    kill(pid, SIGKILL)
    var status: Int32 = 0
    #expect(waitpid(pid, &status, 0) == pid)
    program.proceed()
    #expect(program.phase == .ended(.unknown))
    #expect(program.isOver)
  }
}
