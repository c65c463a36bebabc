import Glibc
import Lifecycle
import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("The turns of launches") struct LaunchTurnsTests {
  private final class World {
    let timers = FakeLoop()
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

  @Test func `While processors are busy, a turn lasts until its worker is ready, or for 3 s`() {
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

@Suite("A child between fork and execve") struct StartWatchTests {
  /// A child that gets as far as a test says.
  private final class Child: StartingWorker {
    let report: Descriptor
    let pid: Int32 = 4711
    var outcome: Result<WorkerProcess, LaunchError>?
    private(set) var calls: [String] = []

    init() throws { report = try EventCounter().descriptor }

    func poll() throws(LaunchError) -> WorkerProcess? {
      calls.append("look")
      return try outcome?.get()
    }
    func expire() throws(LaunchError) -> WorkerProcess? {
      calls.append("expire")
      if let outcome { return try outcome.get() }
      throw .stuck("it hangs")
    }
    func abandon() { calls.append("abandon") }
  }

  private let loop = FakeLoop()
  private let child: Child
  private let watch: StartWatch
  private let heard = Heard()

  private final class Heard {
    var outcomes: [Result<WorkerProcess, LaunchError>] = []
    var failures: [String] {
      outcomes.compactMap { if case .failure(let error) = $0 { error.reason } else { nil } }
    }
  }

  init() throws {
    child = try Child()
    watch = StartWatch(loop)
  }

  private func begin() {
    watch.begin(child, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
  }

  /// Whether the watch has no descriptor, no timer and no child any more.
  private var isOver: Bool {
    loop.watched.isEmpty && loop.pending.isEmpty && watch.pid == nil
  }

  @Test func `A child is reported once, when its program runs, and not before`() throws {
    begin()
    #expect(watch.pid == 4711 && heard.outcomes.isEmpty)
    loop.fire()
    #expect(child.calls == ["look"] && heard.outcomes.isEmpty && loop.watched.count == 1)
    let process = try WorkerProcess.forTest()
    child.outcome = .success(process)
    loop.fire()
    #expect(heard.outcomes.count == 1 && isOver)
    if case .success(let reported)? = heard.outcomes.first { #expect(reported === process) }
    loop.advance(by: .seconds(60))
    watch.abandon()
    #expect(
      heard.outcomes.count == 1 && child.calls == ["look", "look"], "it isn't ended any more")
  }

  @Test func `A child that can't execute its program is reported with the reason`() {
    begin()
    child.outcome = .failure(.notFound("serve", path: "/bin"))
    loop.fire()
    #expect(heard.failures == ["serve: not found in its PATH, /bin"] && isOver)
  }

  @Test func `At the deadline a child that hangs is given up, and one that runs isn't`() throws {
    begin()
    loop.advance(by: .seconds(9))
    #expect(heard.outcomes.isEmpty)
    loop.advance(by: .seconds(1))
    #expect(heard.failures == ["it hangs"] && child.calls == ["expire"] && isOver)

    let late = try Child()
    late.outcome = .success(try .forTest())
    watch.begin(late, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
    loop.advance(by: .seconds(10))
    #expect(heard.outcomes.count == 2 && heard.failures.count == 1 && isOver)
  }

  @Test func `A child that isn't wanted any more is killed, and nothing is reported of it`() {
    begin()
    watch.abandon()
    watch.abandon()
    loop.advance(by: .seconds(60))
    #expect(child.calls == ["abandon"] && heard.outcomes.isEmpty && isOver)
  }

  @Test func `A child that can't be watched is killed, and reported at once`() {
    loop.refusal = ENOSPC
    begin()
    #expect(child.calls == ["abandon"] && isOver)
    #expect(heard.failures.count == 1 && heard.failures[0].hasPrefix("can't watch its start: "))
  }

  @Test func `The callback of a start may begin the next one`() throws {
    let second = try Child()
    second.outcome = .failure(.noCommand)
    watch.begin(child, within: .seconds(10)) { [heard, watch] in
      heard.outcomes.append($0)
      watch.begin(second, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
    }
    child.outcome = .failure(.stuck("first"))
    loop.fire()
    #expect(heard.failures == ["first"] && loop.watched.count == 1 && watch.pid == 4711)
    loop.fire()
    #expect(heard.failures == ["first", "its command is empty"] && isOver)
  }
}
