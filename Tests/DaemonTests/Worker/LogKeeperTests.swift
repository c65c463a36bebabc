import Lifecycle
import Policy
import Testing

@testable import Daemon
@testable import Linux
@testable import Supervision

@Suite("The size of running workers' logs") struct LogKeeperTests {
  private final class World {
    let timers = FakeLoop()
    private(set) var rotations: [(id: WorkerID, rotation: LogRotation)] = []
    private(set) var lines: [String] = []
    private(set) var unwatched: [Int32] = []
    private var waiting: [(LogKeeper.Outcome, Int32?) -> Void] = []
    private(set) lazy var keeper = LogKeeper(
      timers, log: { [unowned self] in lines.append($1) }
    ) { [unowned self] id, _, rotation, then in
      guard let rotation else { return then(.small, nil) }
      rotations.append((id, rotation))
      waiting.append(then)
    } unwatch: { [unowned self] in
      unwatched.append($0)
    }

    func sample(
      _ name: String = "web", _ output: WorkerOutput = WorkerOutput(maxSize: .megabytes(1))
    ) {
      keeper.checkLog(LogDestination(path: "/logs/\(name).log"), of: WorkerID(name), output)
    }
    func answer(_ failure: String? = nil) {
      answer(failure.map { LogKeeper.Outcome.failed($0) } ?? .small)
    }
    func answer(_ outcome: LogKeeper.Outcome, watch: Int32? = nil) {
      let all = waiting
      waiting = []
      for then in all { then(outcome, watch) }
    }
    /// Delivers the kernel's two reports of a write.
    func write(_ numbers: Int32...) {
      keeper.didReceive(WriteWatch.Reports(written: numbers, ended: numbers))
    }
  }

  private let world = World()

  @Test func `A log's size is checked on another thread, if the configuration has a limit`() {
    world.sample("web", WorkerOutput())
    world.sample("web", WorkerOutput(maxSize: .megabytes(2), keep: 7))
    #expect(world.rotations.map(\.id) == [WorkerID("web")])
    #expect(world.rotations.first?.rotation.limit == 2 << 20)
    #expect(
      world.rotations.first?.rotation.destination == LogDestination(path: "/logs/web.log", keep: 7))
  }

  @Test func `A log is checked again when its last check has ended, and each worker's by itself`() {
    world.sample()
    world.sample()
    world.sample("db")
    #expect(world.rotations.map(\.id.name) == ["web", "db"])
    world.answer()
    world.sample()
    #expect(world.rotations.map(\.id.name) == ["web", "db", "web"])
    #expect(world.lines.isEmpty)
  }

  @Test func `A log's check that fails is logged and repeated a minute later`() {
    world.sample()
    world.answer("no space left")
    #expect(
      world.lines == ["web: its log is over output.max_size and can't be rotated: no space left"])
    world.timers.advance(by: LogKeeper.pause)
    world.sample()
    world.sample("db")
    #expect(world.rotations.map(\.id.name) == ["web", "db"], "a minute isn't over")
    world.timers.advance(by: .milliseconds(1))
    world.sample()
    world.answer()
    world.sample()
    #expect(world.rotations.map(\.id.name) == ["web", "db", "web", "web"])
    #expect(world.lines.count == 1)
  }

  @Test func `A rotated log is checked again 10 ms later, as long as its worker runs`() {
    world.sample()
    world.answer(.rotated)
    world.sample()
    #expect(world.rotations.count == 1, "the next check is due already")
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 2)
    world.answer(.small)
    world.timers.advance(by: .seconds(1))
    #expect(world.rotations.count == 2)
    world.sample()
    world.answer(.rotated)
    world.keeper.mayRotate = { _ in false }
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 3)
    world.sample()
    #expect(world.rotations.count == 4, "of its next run")
  }

  @Test func `A log is checked 10 ms after a write to it, and again after the next write`() {
    world.sample()
    world.answer(.small, watch: 1)
    world.timers.advance(by: .milliseconds(500))
    #expect(world.rotations.count == 1, "nothing was written")
    world.write(1)
    world.sample()
    #expect(world.rotations.count == 1, "the next check is due already")
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 2)
    world.answer(.small, watch: 2)
    world.timers.advance(by: .milliseconds(500))
    #expect(world.rotations.count == 2)
    world.write(2)
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.map(\.id.name) == ["web", "web", "web"])
  }

  @Test func `A write during a check of a log is followed by another check`() {
    world.sample()
    world.write(1)
    world.answer(.small, watch: 1)
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 2, "it was reported before the number was known")
    world.answer(.small, watch: 2)
    world.sample()
    world.write(2)
    world.answer(.small, watch: 3)
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 4)
  }

  @Test func `If many logs are written to, each is checked later, at a sample at the latest`() {
    let names = (0..<300).map { "w\($0)" }
    for (number, name) in names.enumerated() {
      world.sample(name)
      world.answer(.small, watch: Int32(number))
    }
    world.write(Int32(0))
    world.write(Int32(1))
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 301)
    world.timers.advance(by: LogKeeper.checkDelay)
    #expect(world.rotations.count == 302)
    for number in 2..<300 { world.write(Int32(number)) }
    world.timers.advance(by: .milliseconds(500))
    #expect((340...360).contains(world.rotations.count), "about a hundred in a second")
    world.timers.advance(by: .milliseconds(500))
    #expect(world.rotations.count == 600)
  }

  @Test func `Writes to the log of a run that has ended aren't awaited`() {
    world.sample()
    world.answer(.small, watch: 1)
    world.sample("db")
    world.keeper.forget(WorkerID("web"))
    world.keeper.forget(WorkerID("db"))
    #expect(world.unwatched == [1])
    world.answer(.small, watch: 2)
    #expect(world.unwatched == [1, 2], "its last check was under way")
    world.sample()
    world.answer(.small, watch: 3)
    world.sample("web", WorkerOutput())
    #expect(world.unwatched == [1, 2, 3], "its log has no limit any more")
  }
}
