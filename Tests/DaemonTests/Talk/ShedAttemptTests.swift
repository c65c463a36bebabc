import Glibc
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("A request for memory") struct ShedAttemptTests {
  private let world: ShedWorld

  init() throws { world = try ShedWorld() }

  @Test("A shed signal counts as answered when the footprint has fallen and rests for three looks")
  func signalFalls() {
    let attempt = world.begin(.signal(SIGUSR1))
    #expect(world.asked == [.signal(SIGUSR1)])
    world.timers.advance(by: .milliseconds(100))
    world.footprint = .megabytes(40)
    // The first look sees it move, and the next three see it at rest.
    world.timers.advance(by: .milliseconds(300))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(100))
    #expect(world.isAnswered)
    world.timers.advance(by: .seconds(5))
    #expect(world.isAnswered, "once")
    attempt.finish()
    #expect(
      world.events.last
        == .shedFinished(world.id, before: .megabytes(100), after: .megabytes(40)))
    #expect(
      world.logged == ["memory request: \(ByteCount.megabytes(100)) → \(ByteCount.megabytes(40))"])
  }

  @Test("A shed signal to a worker that frees nothing counts as answered after a second")
  func signalRests() {
    let attempt = world.begin(.signal(SIGUSR1))
    defer { attempt.end() }
    world.timers.advance(by: .milliseconds(999))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.isAnswered)
  }

  @Test("Shedding is requested when the footprint before it is known, unless it has ended by then")
  func measuredFirst() {
    world.isSlow = true
    let attempt = world.begin(.signal(SIGUSR1))
    world.footprint = .megabytes(90)
    #expect(world.asked == [])
    world.measured()
    #expect(world.asked.count == 1)
    attempt.finish()
    world.footprint = .megabytes(80)
    world.measured()
    #expect(
      world.events == [
        .shedFinished(world.id, before: .megabytes(90), after: .megabytes(80))
      ])
    let ended = world.begin(.signal(SIGUSR1))
    ended.end()
    world.measured()
    world.timers.advance(by: .seconds(10))
    #expect(world.asked.count == 1 && world.events.count == 1)
  }

  @Test("A worker whose footprint isn't known in half of its time is asked all the same")
  func measuredLate() {
    world.isSlow = true
    let attempt = world.begin(.signal(SIGUSR1))
    world.timers.advance(by: .milliseconds(2499))
    #expect(world.asked == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.asked == [.signal(SIGUSR1)])
    world.footprint = .megabytes(40)
    world.measured()
    #expect(world.asked.count == 1, "once")
    attempt.finish()
    world.measured()
    #expect(
      world.events.last
        == .shedFinished(world.id, before: .megabytes(100), after: .megabytes(40)))
  }

  @Test("The watchdog doesn't wait for the answer of a worker that wasn't asked")
  func neverAsked() {
    world.isSlow = true
    let attempt = world.begin(.signal(SIGUSR1))
    attempt.finish()
    #expect(world.isAnswered)
    world.timers.advance(by: .seconds(5))
    #expect(world.asked == [])
  }

  @Test("Nor for one whose processes weren't found in time")
  func neverFound() {
    world.isHidden = true
    let attempt = world.begin(.signal(SIGUSR1))
    attempt.finish()
    #expect(world.asked == [] && world.events.first == .shedAnswered(world.id))
  }

  @Test("A worker that has returned to the foreground gets no message of its background")
  func returned() {
    world.isSlow = true
    let attempt = world.begin(.signal(SIGUSR1), .didEnterBackground)
    world.isInForeground = true
    world.measured()
    #expect(world.asked == [] && world.isAnswered)
    attempt.end()
  }

  @Test("A shed request without a usable channel counts as answered at once")
  func noChannel() {
    let unasked = world.begin(nil)
    #expect(world.isAnswered && world.logged == [])
    unasked.end()
    world.refusal = .notCaught(signal: SIGUSR1)
    let refused = world.begin(.signal(SIGUSR1))
    #expect(
      world.events.count == 2 && world.logged == ["\(ShedRefusal.notCaught(signal: SIGUSR1))"])
    refused.end()
    world.timers.advance(by: .seconds(10))
    #expect(world.events.count == 2)
  }

  @Test("The footprint is watched after a shed command's end, and a failed command is logged")
  func command() throws {
    let attempt = world.begin(.command(["free"]))
    let command = try #require(world.command)
    #expect(attempt.commandPid == 4711)
    world.timers.advance(by: .seconds(3))
    #expect(world.events == [] && world.measurementCount == 1)
    command.ended(.ended(.exited(1)))
    #expect(attempt.commandPid == nil)
    #expect(world.logged.count == 1 && world.logged[0].hasPrefix("its shed command failed: "))
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
    attempt.end()
    #expect(!command.isCancelled, "it has ended")
  }

  @Test("The end of a shed request ends its command and logs what delayed the command's start")
  func commandHangs() throws {
    let attempt = world.begin(.command(["free"]))
    let command = try #require(world.command)
    command.hang = "its file system doesn't answer"
    attempt.end()
    attempt.end()
    #expect(command.isCancelled)
    #expect(world.logged == ["its shed command did not start: its file system doesn't answer"])
    command.ended(.cancelled)
    world.timers.advance(by: .seconds(5))
    #expect(world.events == [])
  }
}
