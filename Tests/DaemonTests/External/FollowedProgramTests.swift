import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon
@testable import Supervision

@Suite("A program beside a worker, on the loop") struct FollowedProgramTests {
  private final class Ends { var count = 0 }

  private let loop = FakeLoop()
  private let ends = Ends()
  private let threads = JobPool(name: "test", maxOrdinary: 8, endsAfter: .seconds(5))
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A program that really runs. Only one of a name is prepared at a time.
  private func program(_ command: String = "/bin/true") throws -> SideProgram {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    return .alone(
      [command], about: scratch.uniquePath("program"), in: "/", environment: [:], adding: [:],
      input: null, output: null)
  }

  /// A program whose file system doesn't answer before `end` is raised, and whose start fails then.
  private func stuck(about subject: String = "stuck", until end: OneTimeEvent) -> SideProgram {
    SideProgram(about: subject, jobs: threads) { () throws(LaunchError) in
      end.wait()
      throw .stuck("its file system")
    }
  }

  /// A program that couldn't even begin.
  private func overAtOnce() -> SideProgram {
    let end = OneTimeEvent()
    let first = stuck(until: end)
    let second = stuck(until: end)
    end.raise()
    withExtendedLifetime(first) {}
    return second
  }

  private func follow(_ program: SideProgram) -> FollowedProgram {
    FollowedProgram(program, loop) { [ends] in ends.count += 1 }
  }

  private func pass() { loop.advance(by: .zero) }

  private func waitForEnd() throws -> Bool {
    try eventually {
      loop.fire()
      pass()
      return ends.count > 0
    }
  }

  @Test func `Each step's descriptor is watched in its turn, and the end reported once`() throws {
    let program = try program()
    let followed = follow(program)
    let first = program.descriptor
    #expect(first != nil)
    let isOver = try eventually {
      #expect(loop.watched.map { $0.descriptor === program.descriptor } == [true])
      #expect(ends.count == 0)
      loop.fire()
      return program.isOver
    }
    pass()
    #expect(isOver)
    #expect(loop.watched.isEmpty && ends.count == 1 && program.phase == .ended(.exited(0)))
    #expect(program.descriptor !== first)
    followed.cancel()
    #expect(ends.count == 1)
  }

  @Test func `A step that isn't over yet is watched on, as it was`() throws {
    let end = OneTimeEvent()
    defer { end.raise() }
    let program = stuck(until: end)
    let followed = follow(program)
    let token = loop.watched.first?.token
    #expect(token != nil)
    loop.fire()
    loop.fire()
    #expect(loop.watched.map(\.token) == [token] && ends.count == 0)
    withExtendedLifetime(followed) {}
  }

  @Test func `A program that couldn't even begin is reported when the caller has it`() {
    let followed = follow(overAtOnce())
    #expect(ends.count == 0 && loop.watched.isEmpty)
    pass()
    pass()
    #expect(ends.count == 1)
    withExtendedLifetime(followed) {}
  }

  @Test func `A cancelled program's end isn't reported, and the loop keeps nothing`() throws {
    let program = try program()
    let followed = follow(program)
    followed.cancel()
    pass()
    #expect(program.phase == .cancelled && loop.watched.isEmpty && ends.count == 0)
    // A program that is over already behaves in the same way.
    let over = follow(overAtOnce())
    over.cancel()
    pass()
    #expect(ends.count == 0)
  }

  @Test(arguments: [false, true])
  func `A program that can't be watched, now or later, is ended and reported`(later: Bool) throws {
    if !later { loop.refusal = ENOSPC }
    let program = try program()
    let followed = follow(program)
    loop.refusal = ENOSPC
    #expect((program.phase == .cancelled) == !later && ends.count == 0)
    #expect(try waitForEnd())
    #expect(program.phase == .cancelled && loop.watched.isEmpty && ends.count == 1)
    withExtendedLifetime(followed) {}
  }

  @Test func `A program that is dropped leaves nothing in the loop, whenever that is`() throws {
    var followed: FollowedProgram? = follow(try program())
    #expect(followed != nil && loop.watched.count == 1)
    followed = nil
    #expect(loop.watched.isEmpty)
    followed = follow(overAtOnce())
    followed = nil
    pass()
    #expect(ends.count == 0)
    // The follower is released by the report of its own end.
    followed = FollowedProgram(try program("/nowhere/true"), loop) { [ends] in
      ends.count += 1
      followed = nil
    }
    #expect(try waitForEnd())
    #expect(ends.count == 1 && followed == nil && loop.watched.isEmpty)
  }
}
