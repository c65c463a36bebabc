import Lifecycle
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Wakes at the instants of `wake_at`") struct ScheduleMonitorTests {
  /// A machine in UTC, on 22 November 2026 at 10:00, whose disk answers when the test decides.
  private final class World {
    static let start: Int64 = 1_795_341_600
    let timers = FakeLoop()
    let files = FakeStateFiles()
    let scratch: Scratch
    let workers = WorkerRegistry()
    /// How far the wall clock has been set forward, in seconds.
    var isSetForward: Int64 = 0
    private(set) var woken: [String] = []
    private(set) var warnings: [String] = []
    private(set) lazy var monitor = ScheduleMonitor(
      path: path, timers: timers, files: files, workers: workers,
      wallClock: { [unowned self] in wallClock }, offset: { _ in 0 },
      wake: { [unowned self] in woken.append($0.name) },
      warn: { [unowned self] in warnings.append($0) })
    private let began: Instant

    init(plan: String? = nil) throws {
      scratch = try Scratch(plan.map { ["schedule": $0] } ?? [:])
      began = timers.now
    }

    var path: String { "\(scratch.path)/schedule" }
    var plan: String? { files.texts[path] }
    private var wallClock: Int64 {
      (Self.start + isSetForward) * 1_000_000_000 + (timers.now - began).wholeNanoseconds
    }

    func schedule(_ name: String, _ line: String) throws {
      let schedule = try CalendarSchedule(parsing: line)
      workers[WorkerID(name)] = .forTest(name) { $0.wakeAt = [schedule] }
    }

    /// Advances the time with a disk that answers at once.
    func advance(by duration: Duration) {
      for _ in 0..<Int(duration.seconds) {
        timers.advance(by: .seconds(1))
        files.answer()
      }
    }
  }

  @Test func `A scheduled wake occurs at each instant once`() throws {
    let world = try World()
    try world.schedule("job", "*/10 * * * *")
    world.monitor.follow()
    world.advance(by: .seconds(599))
    #expect(world.woken == [])
    world.advance(by: .seconds(2))
    #expect(world.woken == ["job"])
    world.advance(by: .seconds(1800))
    #expect(world.woken == ["job", "job", "job", "job"])
  }

  @Test func `Scheduled wakes that were missed while no daemon ran occur once afterwards`() throws {
    let world = try World(plan: "\(World.start - 7200) job\nnonsense\n")
    try world.schedule("job", "*/10 * * * *")
    world.monitor.follow()
    #expect(world.woken == [], "the next one isn't saved yet")
    world.files.answer()
    #expect(world.woken == ["job"])
    #expect(world.plan == "\(World.start + 600) job\n")
    world.advance(by: .seconds(300))
    #expect(world.woken == ["job"])
  }

  @Test func `A scheduled wake waits at most 5 s for the disk, and occurs once`() throws {
    let world = try World(plan: "\(World.start - 60) job\n")
    try world.schedule("job", "0 * * * *")
    world.monitor.follow()
    world.timers.advance(by: .seconds(6))
    #expect(world.woken == ["job"])
    world.files.answer("No space left on device")
    #expect(world.woken == ["job"])
    #expect(world.warnings.count == 1 && world.warnings[0].contains("No space left on device"))
  }

  @Test func `Scheduled wakes follow a clock that is set forward within a minute`() throws {
    let world = try World()
    try world.schedule("job", "0 12 * * *")
    world.monitor.follow()
    world.files.answer()
    world.advance(by: .seconds(120))
    #expect(world.woken == [])
    world.isSetForward = 7200
    world.advance(by: .seconds(60))
    #expect(world.woken == ["job"])
  }

  @Test func `A planned wake is dropped if the clock is set back or the schedule changes`() throws {
    let world = try World(plan: "\(World.start + 86_400) job\n")
    try world.schedule("job", "0 * * * *")
    world.monitor.follow()
    #expect(world.plan == "\(World.start + 3600) job\n")
    world.workers.removeAll()
    world.monitor.follow()
    #expect(world.plan == "")
    world.files.answer()
    world.advance(by: .seconds(4000))
    #expect(world.woken == [])
  }
}

@Suite("The wake of a worker whose time has come") struct ScheduledWakeTests {
  private let job = WorkerID("job")
  private let driver = EngineDriver.forTest(FakeLoop(), EventNotes())

  @Test func `A worker that is being hibernated at its scheduled time wakes after that`() throws {
    driver.send(.adopted(job, WorkerProfile(policy: LifecyclePolicy()), .suspended))
    driver.send(.footprint(job, .megabytes(8)))
    driver.request(.hibernate, job) { _ in }
    try #require(driver.state.state(of: job) == .hibernating)
    let schedule = try CalendarSchedule(parsing: "0 12 * * *")
    #expect(driver.wake(job, by: [schedule]))
    let result = HibernationResult(
      footprintBefore: .megabytes(8), footprintAfter: .zero, imageSize: .megabytes(2),
      duration: .milliseconds(50))
    driver.send(.hibernated(job, result))
    #expect(driver.state.state(of: job) == .resuming)
  }

  @Test func `A worker that runs at its scheduled time isn't woken`() throws {
    driver.send(.adopted(job, WorkerProfile(policy: LifecyclePolicy()), .background))
    let schedule = try CalendarSchedule(parsing: "0 12 * * *")
    #expect(!driver.wake(job, by: [schedule]))
  }
}

/// Schedules in a zone that is two hours ahead of UTC in summer and one in winter, in 2026.
@Suite("A schedule in local time") struct LocalTimeTests {
  private static let spring: Int64 = 1_774_746_000  // 29 March, 01:00 UTC
  private static let autumn: Int64 = 1_792_890_000  // 25 October, 01:00 UTC

  private static func offset(at seconds: Int64) -> Int {
    (spring..<autumn).contains(seconds) ? 7200 : 3600
  }

  private static func next(_ line: String, after now: Int64) throws -> Int64? {
    LocalTime.next(try CalendarSchedule(parsing: line), after: now, offset: offset)
  }

  @Test func `A scheduled time occurs once when the clock is put back`() throws {
    // 02:30 in summer time is 00:30 UTC, and again, in winter time, 01:30 UTC.
    let first = Self.autumn - 1800
    #expect(try Self.next("30 2 * * *", after: Self.autumn - 7200) == first)
    let following = Self.autumn + 86_400 + 1800
    #expect(try Self.next("30 2 * * *", after: first) == following)
    #expect(try Self.next("30 2 * * *", after: first + 900) == following)
    #expect(try Self.next("30 2 * * *", after: Self.autumn + 60) == following)
  }

  @Test func `A scheduled time that the clock skips occurs later by as much`() throws {
    // There is no 02:30 on that day. 03:30 in summer time is 01:30 UTC.
    #expect(try Self.next("30 2 * * *", after: Self.spring - 7200) == Self.spring + 1800)
    #expect(
      try Self.next("30 2 * * *", after: Self.spring + 1800) == Self.spring + 86_400 - 1800)
  }

  @Test func `A schedule keeps its time of day when daylight saving time begins or ends`() throws {
    // 12:00 is 10:00 UTC in summer and 11:00 UTC in winter.
    let noon = Self.autumn + 10 * 3600
    #expect(try Self.next("0 12 * * *", after: Self.autumn - 3600) == noon)
    #expect(
      try Self.next("0 12 * * *", after: Self.spring - 3600) == Self.spring + 9 * 3600)
  }
}
