import Glibc
import Linux
import Policy
import Testing

@testable import Daemon

@Suite("A program beside a worker, on the loop") struct FollowedProgramTests {
  /// Each step has a descriptor of its own, and needs as many calls as a test says.
  private final class Program: SteppingProgram {
    private(set) var steps: [Descriptor]
    private(set) var proceeded = 0
    private(set) var isCancelled = false
    var stays = false

    init(steps count: Int) throws {
      steps = try (0..<count).map { _ in try EventCounter().descriptor }
    }

    var descriptor: Descriptor? { isCancelled ? nil : steps.first }
    var isOver: Bool { descriptor == nil }
    func proceed() {
      proceeded += 1
      if !stays { steps.removeFirst() }
    }
    func cancel() { isCancelled = true }
  }

  private final class Ends { var count = 0 }

  private let loop = FakeLoop()
  private let ends = Ends()

  private func follow(_ program: Program) -> FollowedProgram<Program> {
    FollowedProgram(program, loop) { [ends] in ends.count += 1 }
  }

  private func pass() { loop.timers.advance(by: .zero) }

  @Test("The descriptor of each step is watched in its turn, and the end is reported once")
  func steps() throws {
    let program = try Program(steps: 2)
    let descriptors = program.steps
    let followed = follow(program)
    #expect(loop.watched.map { $0.descriptor === descriptors[0] } == [true] && ends.count == 0)
    loop.fire()
    #expect(loop.watched.map { $0.descriptor === descriptors[1] } == [true] && ends.count == 0)
    loop.fire()
    pass()
    #expect(loop.watched.isEmpty && ends.count == 1 && program.proceeded == 2)
    followed.cancel()
    #expect(ends.count == 1)
  }

  @Test("A step that isn't over yet is watched on, as it was")
  func sameStep() throws {
    let program = try Program(steps: 1)
    program.stays = true
    let followed = follow(program)
    let token = loop.watched.first?.token
    loop.fire()
    loop.fire()
    #expect(program.proceeded == 2 && loop.watched.map(\.token) == [token] && ends.count == 0)
    withExtendedLifetime(followed) {}
  }

  @Test("A program that couldn't even begin is reported later, and not before the caller has it")
  func overAtOnce() throws {
    let followed = follow(try Program(steps: 0))
    #expect(ends.count == 0 && loop.watched.isEmpty)
    pass()
    pass()
    #expect(ends.count == 1)
    withExtendedLifetime(followed) {}
  }

  @Test("A cancelled program's end isn't reported, and nothing of it stays in the loop")
  func cancelled() throws {
    let program = try Program(steps: 1)
    let followed = follow(program)
    followed.cancel()
    pass()
    #expect(program.isCancelled && loop.watched.isEmpty && ends.count == 0)
    // The same of one that is over already.
    let over = follow(try Program(steps: 0))
    over.cancel()
    pass()
    #expect(ends.count == 0)
  }

  @Test("A program that can't be watched is ended, and its end is reported, later")
  func unwatched() throws {
    loop.refusal = ENOSPC
    let program = try Program(steps: 1)
    let followed = follow(program)
    #expect(program.isCancelled && ends.count == 0)
    pass()
    #expect(ends.count == 1)
    withExtendedLifetime(followed) {}
  }

  @Test("A later step that can't be watched ends the program, too")
  func unwatchedLater() throws {
    let program = try Program(steps: 2)
    let followed = follow(program)
    loop.refusal = ENOSPC
    loop.fire()
    pass()
    #expect(program.isCancelled && loop.watched.isEmpty && ends.count == 1)
    withExtendedLifetime(followed) {}
  }

  @Test("A program that is dropped leaves nothing in the loop, whenever that is")
  func dropped() throws {
    var followed: FollowedProgram<Program>? = follow(try Program(steps: 1))
    #expect(followed != nil && loop.watched.count == 1)
    followed = nil
    #expect(loop.watched.isEmpty)
    followed = follow(try Program(steps: 0))
    followed = nil
    pass()
    #expect(ends.count == 0)
    // By the report of its own end.
    followed = FollowedProgram(try Program(steps: 1), loop) { [ends] in
      ends.count += 1
      followed = nil
    }
    loop.fire()
    #expect(ends.count == 1 && followed == nil && loop.watched.isEmpty)
  }
}
