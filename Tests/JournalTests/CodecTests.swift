import JSONLines
import Lifecycle
import Policy
import Testing

@testable import Journal

@Suite("The journal's records") struct CodecTests {
  private static let worker = WorkerID("a \"name\"\n\u{1}\\ é漢")

  private static var profile: WorkerProfile {
    var policy = LifecyclePolicy()
    policy.name = "mine"
    policy.memory = .device(.megabytes(96))
    policy.background.suspendAfter = nil
    policy.hibernate.maxFootprint = nil
    policy.pressure.urgent = nil
    policy.pressure.warning = PressureCondition(availableBelow: .bytes(.megabytes(5)))
    policy.ladder.critical = [.terminate(.suspended)]
    policy.foreground.cpuBelow = 0.1 + 0.2
    return WorkerProfile(policy: policy, importance: 7, canShed: true)
  }

  /// At least one event of each kind. A test below checks that none is missing.
  static var events: [Event] {
    [
      .added(worker, profile), .profileChanged(worker, profile), .removed(worker),
      .adopted(worker, profile, .hibernated),
      .request(Request(id: .max, verb: .hibernate, worker: worker)),
      .request(Request(id: 2, verb: .start, worker: worker, asked: Instant(nanoseconds: 7))),
      .request(Request(id: 3, verb: .restart, worker: worker, occasion: .autostart)),
      .launched(worker),
      .launchFailed(worker, "no such file\u{2028}"), .ready(worker), .shedAnswered(worker),
      .shedFinished(worker, before: ByteCount(.max), after: .zero), .suspended(worker),
      .suspendFailed(worker, ""), .staysAwake(worker, "it works by its own timer"),
      .hibernated(
        worker,
        HibernationResult(
          footprintBefore: ByteCount(1), footprintAfter: ByteCount(2), imageSize: ByteCount(3),
          duration: Duration(secondsComponent: 1, attosecondsComponent: 1))),
      .hibernateFailed(worker, "io_uring", permanent: true), .resumed(worker, .nanoseconds(1)),
      .resumeFailed(worker, "checksum", intact: false), .exited(worker, .exited(-1)),
      .exited(worker, .signaled(9)), .exited(worker, .unknown),
      .footprint(worker, ByteCount(12345)), .taskBegan(worker, task: "save", limit: nil),
      .taskBegan(worker, task: "save", limit: .seconds(3)), .taskEnded(worker, task: "save"),
      .activity(worker), .hold(worker, true), .fileLocks(worker, held: 3),
      .extendTimeout(worker, .milliseconds(7)), .purgeableOffered(worker, ByteCount(5)),
      .purged(worker, freed: ByteCount(6)), .purgeFailed(worker, "EPERM"),
      .swapped(worker, ByteCount(3)), .filled(worker, swapped: ByteCount(2)),
      .trimmed(
        worker,
        TrimResult(
          residentBefore: ByteCount(9), residentAfter: ByteCount(4), swapped: ByteCount(5),
          duration: .milliseconds(30), stoppedFor: .milliseconds(2))),
      .trimmed(
        worker,
        TrimResult(
          residentBefore: ByteCount(9), residentAfter: ByteCount(4), swapped: ByteCount(5),
          inImage: ByteCount(3), duration: .milliseconds(30))),
      .trimLost(worker, "it forks often"), .trimFailed(worker, "no swap", permanent: true),
      .fillFailed(worker, "EIO"),
      .wakeNeeded(worker, "a connection"),
      .memory(MemoryReading(total: ByteCount(9), available: ByteCount(8))),
      .memory(
        MemoryReading(
          total: ByteCount(9), available: ByteCount(-8), someStall: 1.0 / 3, fullStall: 0)),
      .memory(
        MemoryReading(total: ByteCount(9), available: ByteCount(8), swapFree: ByteCount(7))),
      .disk(
        DiskReading(
          total: ByteCount(1), free: ByteCount(2), images: ByteCount(3),
          writtenToday: ByteCount(4))), .stalled(.critical),
      .pressureSet(.urgent, for: .seconds(30)), .deadline, .machineSlept(.seconds(3600)),
      .released(worker),
      .unhealthy(worker, "its probe failed"),
      .watchdogInterval(worker, .milliseconds(1500)), .watchdogSeen(worker, at: nil),
      .watchdogSeen(worker, at: Instant(nanoseconds: 77)), .watchdogTriggered(worker),
      .moved(worker, .suspended), .moved(worker, .hibernated, "idle for 2 m"),
      .channelsChanged(worker, canShed: true, canAnswer: false),
      .found(worker, .underWay), .found(worker, .unverifiable("its image is missing")),
      .worked(worker), .timerDue(worker, "a time-out"), .exited(worker, .outOfMemory),
    ]
  }

  @Test func `Every kind of event reads back from the journal as it was written`() throws {
    let profiles = try ProfileCodec(base: LifecyclePolicy())
    var kinds: Set<String> = []
    for event in Self.events {
      var fields = FieldWriter()
      try fields.set(event, profiles)
      let tree = try #require(JSON(fields.object.line))
      #expect(try FieldReader(record: tree).event(profiles) == event)
      kinds.insert(try #require(tree["e"]?.text))
    }
    #expect(kinds == Set(EventKind.allCases.map(\.rawValue)), "no sample of some kind")
  }

  @Test("A policy is written as its difference from another, and reads back as it was")
  func policyDifference() throws {
    let profiles = try ProfileCodec(base: LifecyclePolicy())
    let tree = try profiles.tree(Self.profile)
    #expect(try profiles.profile(tree) == Self.profile)
    #expect(tree["policy"]?["watchdog"] == nil)
    #expect(tree["policy"]?["background"]?["suspendAfter"] == .null)
    let other = try ProfileCodec(base: Self.profile.policy)
    #expect(try other.policy(try other.tree(LifecyclePolicy())) == LifecyclePolicy())
  }

  @Test func `A policy of an older version gets the defaults of the keys that it lacks`() throws {
    var tree = try JSON(encoding: Self.profile.policy)
    guard case .object(let members) = tree else { throw JournalMismatch("no object") }
    tree = .object(members.filter { $0.name != "watchdog" && $0.name != "earlyWake" })
    #expect(try ProfileCodec(header: tree).policy() == Self.profile.policy)
  }

  @Test("A checkpoint has only what differs between a worker's policy and the header's")
  func shortCheckpoint() throws {
    var engine = Engine(policy: Self.profile.policy)
    _ = engine.handle(.adopted(Self.worker, Self.profile, .foreground), at: .zero)
    let codec = try ProfileCodec(base: LifecyclePolicy())
    let checkpoint = try codec.checkpoint(engine)
    let record = checkpoint["workers"]?["workers"]?.elements?.first?["record"]
    #expect(try record?["profile"]?["policy"] == codec.tree(engine.policy))
    #expect(record?["profile"]?["policy"]?["watchdog"] == nil)
    #expect(try codec.engine(checkpoint) == engine)
    // A checkpoint of an earlier version has whole policies.
    var earlier = try JSON(encoding: engine)
    earlier.set("policy", try codec.tree(engine.policy))
    #expect(try codec.engine(earlier) == engine)
  }

  @Test("A checkpoint of a version without trims is read, with the default rules for them")
  func checkpointWithoutTrims() throws {
    let policy = LifecyclePolicy()
    var engine = Engine(policy: policy)
    _ = engine.handle(.adopted(Self.worker, WorkerProfile(policy: policy), .foreground), at: .zero)
    let tree = try JSON(encoding: engine)
    let older = Self.without("trim", tree)
    #expect(older != tree)
    #expect(try older.decode(Engine.self) == engine)
  }

  private static func without(_ name: String, _ tree: JSON) -> JSON {
    switch tree {
    case .array(let elements): .array(elements.map { without(name, $0) })
    case .object(let members):
      .object(
        members.filter { $0.name != name }.map { JSON.Member($0.name, without(name, $0.value)) })
    default: tree
    }
  }

  @Test func `Samples read back exactly, whatever their numbers are`() throws {
    var batch = SampleBatch()
    let memory = Self.events.filter { if case .memory = $0 { true } else { false } }
    #expect(memory.count == 3)
    let events: [(Int64, Event)] = [
      (5, memory[0]), (5, .footprint(Self.worker, ByteCount(.max))),
      (1_000_000_007, memory[1]), (3, .footprint(Self.worker, ByteCount(.min))),
      (4, .activity(WorkerID(""))), (6, .deadline), (7, memory[2]), (.max, memory[0]),
    ].map { (Int64($0.0), $0.1) }
    for (at, event) in events {
      #expect(SampleBatch.accepts(event) && batch.hasRoom(for: event))
      batch.add(event, at: Instant(nanoseconds: at))
    }
    let taken = batch.drainBytes()
    let line = try #require(taken)
    let record = try #require(SealedLine.open(line.dropLast()))
    let read = try SampleBatch.read(record)
    #expect(read.map(\.at.nanoseconds) == events.map(\.0))
    #expect(read.map(\.event) == events.map(\.1))
  }

  @Test(arguments: [
    (0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_778, "2026-11-21"),
    (-1, "1969-12-31"),
  ])
  func `The number of a day is written as its calendar date`(day: Int, text: String) {
    #expect(CalendarDate(daysSince1970: day).text == text)
    let date = CalendarDate(daysSince1970: day)
    #expect(
      CalendarDate.daysSince1970(year: date.year, month: date.month, day: date.day) == day)
    #expect((CalendarDate.weekStart(of: day) + 3) % 7 == 0)
  }
}
