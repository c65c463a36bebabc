import Glibc
import Journal
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("The counts of each day") struct DayKeeperTests {
  /// A day that ends, and a disk that answers, when a test decides.
  private final class World {
    let scratch: Scratch
    let queue = WorkQueue(name: "test")
    let lines = LoggedLines()
    let id = WorkerID("web")
    let engine = Engine(policy: LifecyclePolicy(name: "test"))
    var day = 20_000
    private(set) var keeper: DayKeeper
    private var second: Int64 = 0

    init(_ scratch: Scratch? = nil) throws {
      let scratch = try scratch ?? Scratch()
      self.scratch = scratch
      var today = { 20_000 }
      keeper = DayKeeper(
        directory: "\(scratch.path)/reports", queue: queue,
        wall: { WallTime(nanoseconds: Int64(today()) * 86_400_000_000_000) }, log: lines.log)
      today = { [unowned self] in day }
    }

    var now: Instant { .zero + .seconds(second) }

    func makeDirectory() { mkdir("\(scratch.path)/reports", 0o700) }

    func begin() { keeper.begin(engine, at: now) }

    /// Records launches that have failed, and the memory reading of each second.
    func count(_ failures: Int, after seconds: Int64 = 1) {
      second += seconds
      for _ in 0..<failures { record(.launchFailed(id, "no such file")) }
      record(.memory(MemoryReading(total: .gigabytes(8), available: .gigabytes(4))))
    }

    private func record(_ event: Event) {
      keeper.record(event, directives: [], engine: engine, at: now)
    }

    func save() {
      keeper.save(at: now)
      waitForDisk()
    }

    func waitForDisk() { #expect(queue.drain(within: .seconds(60))) }

    /// The count in the file; nil if there is no file.
    func saved(_ day: Int) throws -> Int? {
      try keeper.store.load(day).map { $0.tallies[id]?.failedLaunches ?? 0 }
    }
  }

  private let world: World

  init() throws { world = try World() }

  @Test func `A day's counts are saved every 10 minutes, and the next daemon adds`() throws {
    world.makeDirectory()
    world.begin()
    world.count(1)
    world.count(2, after: 598)
    world.waitForDisk()
    #expect(try world.saved(20_000) == nil)
    world.count(3, after: 1)
    world.waitForDisk()
    #expect(try world.saved(20_000) == 6)
    world.count(1)
    world.save()
    world.save()
    #expect(try world.saved(20_000) == 7, "nothing is counted twice")
    let next = try World(world.scratch)
    next.begin()
    next.count(10)
    next.save()
    #expect(try next.saved(20_000) == 17 && world.lines.all.isEmpty && next.lines.all.isEmpty)
  }

  @Test func `Savings are those of today and of seven days, of one worker and of all`() throws {
    world.makeDirectory()
    for (day, resumes) in [(19_993, 1), (19_994, 2), (19_999, 4), (20_000, 8)] {
      var tally = WorkerTally()
      tally.resumes = resumes
      tally.savedByteSeconds = 3600 * Double(resumes)
      let other = WorkerID("other")
      try world.keeper.store.save(DayRecord(day: day, tallies: [world.id: tally, other: tally]))
    }
    world.begin()
    world.waitForDisk()
    let one = world.keeper.savings(of: world.id, at: world.now)
    #expect(one.today.resumes == 8 && one.today.byteHours == 8)
    #expect(one.week.resumes == 2 + 4 + 8 && one.week.byteHours == 14)
    #expect(world.keeper.savings(at: world.now).week.resumes == 28)
    world.day += 1
    world.count(1)
    world.save()
    world.save()
    let next = world.keeper.savings(of: world.id, at: world.now)
    #expect(next.today.resumes == 0 && next.week.resumes == 4 + 8)
  }

  @Test func `At midnight (UTC) the counts are saved, and the next day begins with none`() throws {
    world.makeDirectory()
    world.begin()
    world.count(4)
    world.day += 1
    world.count(1)
    world.count(2)
    world.save()
    #expect(try world.saved(20_000) == 5 && world.saved(20_001) == 2)
  }

  @Test(arguments: [true, false])
  func `A clock that is set forth and back loses no count`(isSlow: Bool) throws {
    world.makeDirectory()
    world.begin()
    world.count(1)
    world.save()
    let gate = ThreadGate()
    defer { gate.open() }
    // When the day begins once more, its file is still an old one.
    if isSlow { world.queue.submit { gate.pass() } }
    world.count(2)
    world.day += 1
    world.count(4)
    world.day -= 1
    world.count(8)
    world.count(16)
    gate.open()
    world.save()
    #expect(try world.saved(20_000) == 1 + 2 + 4 + 16 && world.saved(20_001) == 8)
  }

  @Test func `A damaged file is moved aside and logged, and its day begins with zero`() throws {
    world.makeDirectory()
    let name = "\(CalendarDate(daysSince1970: 20_000).text).json"
    try world.scratch.write("reports/\(name)", "damaged")
    world.begin()
    world.waitForDisk()
    #expect(world.lines.all.count == 1 && world.lines.all[0].hasSuffix("they start from zero"))
    world.count(3)
    world.save()
    #expect(try world.saved(20_000) == 3 && world.lines.all.count == 1)
    let aside = "\(world.scratch.path)/reports/\(name).damaged"
    #expect(try readFile(aside).elementsEqual("damaged".utf8))
  }

  @Test func `Counts that can't be written are kept until that works again`() throws {
    world.begin()
    world.count(1)
    world.save()
    #expect(world.lines.all.count == 1 && world.lines.all[0].contains("can't write the counts"))
    world.count(2)
    world.day += 1
    world.count(4)
    world.count(8)
    world.waitForDisk()
    world.makeDirectory()
    world.save()
    #expect(try world.saved(20_000) == 7 && world.saved(20_001) == 8)
    // A week is the maximum.
    Scratch.remove("\(world.scratch.path)/reports")
    for _ in 0..<20 {
      world.day += 1
      world.count(1)
    }
    world.waitForDisk()
    world.makeDirectory()
    world.save()
    #expect(try listDirectory("\(world.scratch.path)/reports").count == 7 + 1)
  }

  @Test func `The counts of 396 days are kept, and other files`() throws {
    world.makeDirectory()
    for day in 19_000..<19_400 {
      let text = String(decoding: try DayRecord(day: day).encoded(), as: UTF8.self)
      try world.scratch.write("reports/\(CalendarDate(daysSince1970: day).text).json", text)
    }
    try world.scratch.write("reports/notes.txt", "")
    world.begin()
    world.count(1)
    world.save()
    let names = try listDirectory("\(world.scratch.path)/reports")
    #expect(names.count == 397 && names.contains("notes.txt"))
    #expect(try world.saved(19_004) == nil && world.saved(19_005) == 0 && world.saved(20_000) == 1)
  }
}

@Suite("Counts since the daemon's start") struct RunCountsTests {
  private let web = WorkerID("web")

  private func transition(_ from: WorkerState, _ to: WorkerState) -> Directive {
    .transition(Transition(worker: web, from: from, to: to, cause: .succeeded, at: .zero))
  }

  @Test func `A wake counts by the state that the worker slept in, with the time that it took`() {
    let counts = RunCounts(began: .zero)
    counts.record(
      .wakeNeeded(web, "a connection"), directives: [transition(.hibernated, .resuming)])
    counts.record(
      .resumed(web, .milliseconds(30)), directives: [transition(.resuming, .background)])
    // This worker isn't being woken.
    counts.record(.resumed(web, .seconds(9)), directives: [])
    counts.record(.wakeNeeded(web, "a connection"), directives: [transition(.suspended, .resuming)])
    counts.record(.resumed(web, .seconds(40)), directives: [])
    let times = counts.wakeTimes
    #expect(times.map(\.from) == ["suspended", "hibernated"])
    #expect(times[0].counts.last == 1 && times[0].seconds == 40)
    let index = times[1].bounds.firstIndex(of: 0.05)
    #expect(index.map { times[1].counts[$0] } == 1 && times[1].counts.reduce(0, +) == 1)
    #expect(times[1].seconds == 0.03)
  }

  @Test func `A resume that failed counts as no wake`() {
    let counts = RunCounts(began: .zero)
    counts.record(.wakeNeeded(web, "a timer"), directives: [transition(.hibernated, .resuming)])
    counts.record(
      .resumeFailed(web, "no", intact: false), directives: [transition(.resuming, .terminating)])
    counts.record(.resumed(web, .seconds(1)), directives: [])
    #expect(counts.wakeTimes.allSatisfy { $0.counts.reduce(0, +) == 0 })
    #expect(counts.upSeconds(at: .zero + .seconds(5)) == 5)
  }
}

@Suite("A worker's counts since the daemon's start") struct TallySinceStartTests {
  @Test func `A worker's counts outlive the save of a day, and end with the worker`() throws {
    let scratch = try Scratch()
    let web = WorkerID("web")
    var engine = Engine(policy: LifecyclePolicy(name: "test"))
    let keeper = DayKeeper(directory: "\(scratch.path)/reports", queue: WorkQueue(name: "test")) {
      _, _ in
    }
    var now = Instant.zero
    func send(_ event: Event) {
      now = now + .seconds(1)
      let directives = engine.handle(event, at: now)
      keeper.record(event, directives: directives, engine: engine, at: now)
    }
    keeper.begin(engine, at: now)
    send(.added(web, WorkerProfile(policy: engine.policy)))
    send(.launchFailed(web, "no such file"))
    keeper.save(at: now)
    send(.launchFailed(web, "no such file"))
    #expect(keeper.tally(of: web, at: now).failedLaunches == 2)
    let before = keeper.tally(of: web, at: now).seconds(in: .terminated)
    #expect(keeper.tally(of: web, at: now + .seconds(5)).seconds(in: .terminated) == before + 5)
    send(.removed(web))
    keeper.save(at: now)
    #expect(keeper.tally(of: web, at: now).isEmpty)
  }
}
