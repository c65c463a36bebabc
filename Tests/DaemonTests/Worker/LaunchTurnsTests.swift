import Lifecycle
import Testing

@testable import Daemon

@Suite("The turns of launches") struct LaunchTurnsTests {
  private final class World {
    let timers = FakeTimers()
    private(set) lazy var turns = LaunchTurns(
      timers: timers,
      machine: .init(maxLaunches: 4) { [unowned self] in
        busyChecks += 1
        return isBusy
      })
    var begun: [String] = []
    var endsAtOnce = false
    var isBusy = false
    private(set) var busyChecks = 0

    func enqueue(_ names: [String], isWanted: Bool = false) {
      for name in names {
        turns.enqueue(WorkerID(name), isWanted: isWanted) { [unowned self] in
          begun.append(name)
          if endsAtOnce { end(name) }
        }
      }
    }

    func end(_ name: String) { turns.end(WorkerID(name)) }
  }

  private let world = World()
  private let names = (1...7).map { "w\($0)" }

  @Test func `Four launches begin at once, and each end lets the next one begin, in order`() {
    world.enqueue(names)
    #expect(world.begun == ["w1", "w2", "w3", "w4"])
    world.end("w3")
    #expect(world.begun.last == "w5" && world.begun.count == 5)
    world.end("w1")
    world.end("w5")
    #expect(world.begun == names)
    for name in ["w2", "w4", "w6", "w7"] { world.end(name) }
    #expect(world.timers.pending.isEmpty)
  }

  @Test func `Launches that hang delay the others by 100 ms, once`() {
    world.enqueue(names)
    world.timers.advance(by: .milliseconds(99))
    #expect(world.begun.count == 4)
    world.timers.advance(by: .milliseconds(1))
    #expect(world.begun == names)
    // These four launches still hang, but don't count any more.
    for name in ["w5", "w6", "w7"] { world.end(name) }
    world.enqueue(["a", "b", "c", "d", "e"])
    #expect(Array(world.begun.suffix(4)) == ["a", "b", "c", "d"])
    world.end("a")
    #expect(world.begun.last == "e")
  }

  @Test("While threads wait for a processor, a turn lasts until its worker is ready, or for 3 s")
  func busy() {
    world.isBusy = true
    world.enqueue(names)
    world.timers.advance(by: .milliseconds(2900))
    #expect(world.begun == ["w1", "w2", "w3", "w4"])
    #expect(100...160 ~= world.busyChecks, "it looks each 20 ms")
    world.end("w2")
    #expect(world.begun.last == "w5" && world.begun.count == 5)
    world.timers.advance(by: .milliseconds(100))
    #expect(world.begun == names, "w1, w3 and w4 count no more")
  }

  @Test func `A turn ends within 20 ms when no thread waits for a processor any more`() {
    world.isBusy = true
    world.enqueue(names)
    world.timers.advance(by: .milliseconds(500))
    world.isBusy = false
    world.timers.advance(by: LaunchTurns.interval)
    #expect(world.begun == names)
  }

  @Test func `A launch that is waited for precedes those that only start automatically`() {
    world.isBusy = true
    world.enqueue(names)
    world.enqueue(["a", "b"], isWanted: true)
    for name in ["w1", "w2", "w3"] { world.end(name) }
    #expect(Array(world.begun.suffix(3)) == ["a", "b", "w5"])
  }

  @Test func `A thousand launches that end as they begin all begin`() {
    world.endsAtOnce = true
    let names = (0..<1000).map { "\($0)" }
    world.enqueue(names)
    #expect(world.begun == names && world.timers.pending.isEmpty)
  }

  @Test func `A launch that has begun isn't kept in memory while others wait`() {
    final class Launch {}
    weak var kept: Launch?
    do {
      let launch = Launch()
      kept = launch
      world.turns.enqueue(WorkerID("first"), isWanted: false) { withExtendedLifetime(launch) {} }
    }
    world.enqueue(names)
    #expect(world.begun.count == 3 && kept == nil)
  }

  @Test func `No timer runs while no launch waits for its turn`() {
    world.enqueue(["a", "b", "c", "d"])
    #expect(world.timers.pending.isEmpty)
    world.enqueue(["e"])
    #expect(world.timers.pending.count == 1)
    world.end("a")
    #expect(world.begun.last == "e" && world.timers.pending.isEmpty && world.busyChecks == 0)
  }
}
