import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// What follows a trim by userfaultfd: another one, a fill, a hibernation, the worker's end.
@Suite(.serialized, .needsUserfaults)
struct RepeatedTrimTests {
  let service = HibernationService()

  private func start(_ command: [String]? = nil) throws -> (victim: Victim, image: String) {
    let churn = [try Fixture.compile("churn"), "2", "6", "64"]
    return try Victim.ready(command ?? churn)
  }

  @Test("Trims one after the other, without and with a use of memory between them")
  func again() throws {
    let (victim, path) = try start()
    for round in 0..<6 {
      let summary = try service.trim(victim.target, to: path)
      #expect(summary.mechanism == .userfaultfd)
      #expect(fileExists(path))
      if round % 3 == 1 { try #require(try victim.isWhole, "round \(round)") }
    }
    try #require(try victim.isWhole)
  }

  @Test("A worker that has dropped and changed memory since a trim is trimmed again")
  func changedSince() throws {
    let (victim, path) = try start()
    for round in 1...4 {
      try service.trim(victim.target, to: path)
      try #require(try victim.ask("churn \(round)").hasSuffix("errors 0"), "round \(round)")
      try service.trim(victim.target, to: path)
      try #require(try victim.isWhole, "round \(round)")
    }
    try service.fill(victim.target)
    #expect(isGone(path))
    try #require(try victim.isWhole)
  }

  @Test(
    "A fill of a trimmed worker brings all of its memory back, and a second one changes nothing")
  func filled() throws {
    let (victim, path) = try start()
    let before = try victim.anonymousMemory()
    let summary = try service.trim(victim.target, to: path)
    let missing = try #require(summary.missing)
    for _ in 0..<2 {
      let filled = try service.fill(victim.target)
      #expect(filled.mechanism == nil)
      #expect(missing.bytes == 0)
      #expect(isGone(path))
      #expect(try victim.anonymousMemory() + 64 * pageSize >= before)
      try #require(try victim.isWhole)
    }
  }

  @Test(
    "A trimmed worker is hibernated and resumed with all of its memory, and trimmed after that",
    arguments: [false, true])
  func hibernated(isLazy: Bool) throws {
    let (victim, path) = try start()
    for round in 0..<3 {
      try service.trim(victim.target, to: path)
      if round == 1 { try #require(try victim.ask("churn 2").hasSuffix("errors 0")) }
      // A worker that waits for a page can't be frozen.
      try service.awaitFill(of: victim.target.name)
      let slept = try victim.sleep(service, at: path, restore: isLazy ? .lazy : .eager)
      #expect(slept.moved > 1 << 20)
      try service.resume(victim.target, from: slept.image)
      try #require(try victim.isWhole, "round \(round)")
    }
  }

  @Test("A trimmed worker that is killed leaves no image, whatever its threads wait for")
  func killed() throws {
    for delay in [UInt32(0), 500, 5000] {
      let (victim, path) = try start()
      try service.trim(victim.target, to: path)
      try victim.send("verify")
      usleep(delay)
      kill(victim.process.pid, SIGKILL)
      #expect(try eventually { isGone(path) })
      service.forget(victim.target.name)
    }
  }

  @Test("A worker that has ended can't be trimmed nor filled, and has no image")
  func ended() throws {
    let (victim, path) = try start()
    kill(victim.process.pid, SIGKILL)
    reap(victim.process.pid)
    let errors = [
      #expect(throws: HibernationError.self) { try service.trim(victim.target, to: path) },
      #expect(throws: HibernationError.self) { try service.fill(victim.target) },
    ]
    #expect(errors.allSatisfy { $0?.aftermath == .vanished })
    #expect(isGone(path))
  }

  @Test("A trimmed worker that executes another program runs on, and can be trimmed again")
  func executes() throws {
    let (victim, path) = try start([
      try Fixture.compile("missing_threads"), "exec_itself", Fixture.scratch,
    ])
    for round in 0..<3 {
      try service.trim(victim.target, to: path)
      // The new program has another case.
      if round == 0 { #expect(try victim.ask("run").hasPrefix("ready")) }
      #expect(try victim.ask("check") == "whole")
    }
    try service.fill(victim.target)
    #expect(isGone(path))
    #expect(try victim.ask("check") == "whole")
  }

  @Test("A program that a process of a trimmed worker executes gets no memory of the earlier one")
  func executesInSuspendedWorker() throws {
    let (victim, path) = try start([try Fixture.compile("executes")])
    let target = victim.target
    try service.trim(target, to: path)
    let image = try ImageReader(path: path)
    try #require(image.processes.indices.count { image.hasBackgroundFill(of: $0) } == 2)
    #expect(try victim.ask("exec") == "ready")
    for _ in 0..<2 {
      try #require(try service.freezeTrimmed(target.name) != nil)
      try service.serveTrimmed(target, image: path)
      try target.wake(target.restartInterruptedSyscalls(), isStopped: false)
    }
    try service.trim(target, to: path)
    #expect(try victim.ask("check") == "zeros")
    try service.fill(target)
    #expect(try victim.ask("check") == "zeros")
    service.forget(target.name)
  }

  @Test("A trimmed worker that ends by itself leaves no image")
  func endsByItself() throws {
    let (victim, path) = try start()
    try service.trim(victim.target, to: path)
    try victim.send("quit")
    #expect(try eventually { isGone(path) })
  }
}
