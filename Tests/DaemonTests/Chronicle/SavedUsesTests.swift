import Journal
import Lifecycle
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Uses of workers over a restart of the daemon") struct SavedUsesTests {
  private let web = WorkerID("web")
  private let scratch: Scratch
  private let queue = WorkQueue(name: "test")
  private let lines = LoggedLines()

  init() throws { scratch = try Scratch(["reports/.keep": ""]) }

  private func keeper(_ seconds: Int64) -> UseKeeper {
    UseKeeper(
      directory: "\(scratch.path)/reports", queue: queue,
      wall: { WallTime(nanoseconds: seconds * 1_000_000_000) }, log: lines.log)
  }

  /// Records uses at these seconds of a daemon that ends at second 1000.
  private func earlier(_ seconds: [Int64]) {
    let keeper = keeper(50_000)
    keeper.begin(at: .zero)
    keeper.record(.launched(web), at: .zero)
    for second in seconds { keeper.record(.activity(web), at: .zero + .seconds(second)) }
    keeper.save(at: .zero + .seconds(1000))
    #expect(queue.drain(within: .seconds(60)))
  }

  @Test func `The next daemon continues with the last one's uses, by its own clock`() throws {
    earlier([100, 400, 700])
    // The machine has started again meanwhile: its clock begins from zero, and 500 s have passed.
    let next = keeper(50_500)
    let now = Instant.zero + .seconds(20)
    next.begin(at: now)
    next.record(.activity(web), at: now)
    let uses = try #require(next.history.uses(of: web))
    #expect(uses.count == 4 && uses.last?.code == "active")
    #expect((now - uses.since).seconds == 1500)
    #expect(uses.all.map { (now - $0.began).seconds } == [1400, 1100, 800, 0])
    #expect(uses.medianQuiet == .seconds(300))
    #expect(lines.all.isEmpty)
  }

  @Test func `A clock that was set back makes no use happen in the future`() throws {
    earlier([100])
    let next = keeper(10)
    next.begin(at: .zero + .seconds(20))
    let uses = try #require(next.history.uses(of: web))
    #expect((.zero + .seconds(20) - uses.since).seconds == 1000)
  }

  @Test func `A damaged file is logged, and the uses begin again`() throws {
    earlier([100])
    _ = try scratch.write("reports/uses", "dormouse uses 1\n{}\n")
    let next = keeper(50_500)
    next.begin(at: .zero)
    #expect(next.history.all.isEmpty)
    #expect(lines.all.contains { $0.contains("is damaged") })
  }

  @Test func `The thousand workers that were used last are kept, each with 64 uses`() {
    let keeper = keeper(50_000)
    keeper.begin(at: .zero)
    for number in 0..<1200 {
      keeper.record(
        .activity(WorkerID("w\(number)")), at: .zero + .seconds(Int64(number)))
    }
    for use in 0..<100 {
      keeper.record(.activity(web), at: .zero + .seconds(Int64(2000 + use * 10)))
    }
    keeper.save(at: .zero + .seconds(4000))
    #expect(queue.drain(within: .seconds(60)))
    let next = self.keeper(50_000)
    next.begin(at: .zero + .seconds(4000))
    #expect(next.history.all.count == 1000 && next.history.uses(of: WorkerID("w100")) == nil)
    #expect(next.history.uses(of: web)?.all.count == 64)
    #expect(next.history.uses(of: web)?.count == 100)
  }

  @Test func `The counts of the day aren't confused by the file beside them`() throws {
    earlier([100])
    let store = DayStore(directory: "\(scratch.path)/reports")
    store.trim()
    #expect(try readText("\(scratch.path)/reports/uses").hasPrefix("dormouse uses 1\n"))
  }
}
