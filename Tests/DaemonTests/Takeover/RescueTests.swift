import Glibc
import Hibernation
import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

/// Workers of an ended daemon that wake as a test says. The test's own process stands for each.
private final class Means: RescueMeans {
  var ended: Set<String> = []
  /// The keeper's descriptors; nil: there is no keeper.
  var handover: [ProcessIdentity: Descriptor]?
  var refusal: String?
  var failures: [String: HibernationError] = [:]
  var restored: UInt64 = 0
  var unkillable: Set<String> = []
  private(set) var calls: [String] = []
  private(set) var expected: [ImageExpectation] = []
  private(set) var obstacles: [String] = []
  private(set) var memories: [[Int32]] = []
  /// Called before the first worker is looked for.
  var first: () -> Void = {}

  func collect() -> [ProcessIdentity: Descriptor]? {
    first()
    return handover
  }
  func areTaken() { calls.append("the keeper ends") }
  func life(of record: WorkerRecord) -> ProcessLife {
    ended.contains(record.name) ? .hasEnded : .lives
  }
  func target(
    of record: WorkerRecord, memories: [Int32: Descriptor]
  ) throws -> HibernationTarget {
    if let refusal { throw TestFailure(refusal) }
    self.memories.append(memories.keys.sorted())
    return HibernationTarget(
      name: record.name, root: record.process, session: record.session, cgroup: nil,
      memories: memories, waits: TimedWaits())
  }
  func recover(
    _ target: HibernationTarget, from image: String, expecting: ImageExpectation,
    recorded: () -> String?
  ) throws(HibernationError) -> UInt64 {
    calls.append("wake \(target.name)")
    expected.append(expecting)
    if let failure = failures[target.name] { throw failure }
    if let obstacle = recorded() { obstacles.append(obstacle) }
    return restored
  }
  func end(_ record: WorkerRecord, _ target: HibernationTarget) throws {
    calls.append("end \(record.name)")
    if unkillable.contains(record.name) { throw TestFailure("SIGKILL has no effect") }
  }
}

@Suite("Workers of a daemon that no other one follows") struct RescueTests {
  private let scratch: Scratch
  private let state: StateDirectory
  private let records: WorkerRecordStore
  private let means = Means()

  init() throws {
    scratch = try Scratch()
    state = try StateDirectory(path: scratch.path + "/state")
    records = try WorkerRecordStore(directory: state.workers)
  }

  private func leave(_ name: String, _ rest: String, image: Bool = false) throws {
    var record = WorkerRecord(
      name: name, process: try ProcessStat.read(getpid()).identity, session: getpid(),
      bootID: "boot", command: [name], directory: "/", logPath: "/dev/null", state: rest)
    record.imagePath = image ? state.image(of: name) : nil
    try records.save(record)
    if image { try scratch.write("state/images/\(name).image", "its memory") }
  }

  /// What is reported, in order.
  private func rescue() throws -> [Rescue.Outcome] {
    var outcomes: [Rescue.Outcome] = []
    var rescue = try Rescue(state, means)
    rescue.run { outcomes.append($0) }
    return outcomes
  }

  @Test(
    "Each worker that still runs is woken, in the order of the names, and a later daemon finds it awake"
  )
  func woken() throws {
    try leave("web", "suspended")
    try leave("api", "hibernated", image: true)
    try leave("old", "suspended")
    means.ended = ["old"]
    means.restored = 8192
    let outcomes = try rescue()
    #expect(means.calls == ["wake api", "wake web"])
    #expect(outcomes.map(\.worker) == ["api", "web"] && outcomes.allSatisfy { !$0.isFailure })
    #expect(outcomes.first?.text == "api: runs as pid \(getpid()), 8 KB of memory restored")
    let api = try records.load("api")
    #expect(api.state == "background" && api.imagePath == nil && api.imageMark == nil)
    #expect(try records.load("web").state == "background")
  }

  @Test("Only a worker that is recorded as hibernated must have its memory in an image")
  func expectations() throws {
    try leave("web", "suspended")
    try leave("api", "hibernated", image: true)
    _ = try rescue()
    #expect(means.expected.count == 2)
    if case .hibernated = means.expected[0] {} else { Issue.record("\(means.expected[0])") }
    if case .unknown = means.expected[1] {} else { Issue.record("\(means.expected[1])") }
  }

  @Test("A hibernated worker without its image is ended: its memory is lost")
  func withoutImage() throws {
    try leave("web", "hibernated")
    let outcomes = try rescue()
    #expect(means.calls == ["end web"])
    #expect(outcomes.count == 1 && outcomes[0].isFailure)
    #expect(outcomes[0].text.contains("does not exist any more"))
    #expect(!records.contains("web"))
  }

  @Test("A worker whose memory can't be verified is ended, and its image and record are removed")
  func unverifiable() throws {
    try leave("web", "hibernated", image: true)
    means.failures["web"] = HibernationError(.reading, "damaged", aftermath: .unverifiable)
    let outcomes = try rescue()
    #expect(means.calls == ["wake web", "end web"])
    #expect(outcomes[0].text.contains("terminated: its memory can't be restored: damaged"))
    #expect(!records.contains("web") && isAbsent(state.image(of: "web")))
  }

  @Test("A worker that can't be ended keeps its image and its record")
  func unkillable() throws {
    try leave("web", "hibernated", image: true)
    means.failures["web"] = HibernationError(.reading, "damaged", aftermath: .unverifiable)
    means.unkillable = ["web"]
    let outcomes = try rescue()
    #expect(outcomes[0].isFailure && outcomes[0].text.contains("ending it failed: SIGKILL has no"))
    #expect(records.contains("web") && !isAbsent(state.image(of: "web")))
  }

  @Test("A worker that can't be woken stays asleep with its image, and the others are woken")
  func intact() throws {
    try leave("api", "hibernated", image: true)
    try leave("web", "suspended")
    means.failures["api"] = HibernationError(.reading, "no memory", aftermath: .intact)
    let outcomes = try rescue()
    #expect(outcomes.map(\.isFailure) == [true, false])
    #expect(outcomes[0].text.hasSuffix("it stays asleep"))
    #expect(try records.load("api").state == "hibernated" && !isAbsent(state.image(of: "api")))
    #expect(!means.calls.contains("end api"))
  }

  @Test("A worker that ended meanwhile is no failure")
  func vanished() throws {
    try leave("web", "suspended")
    means.failures["web"] = HibernationError(.reading, "gone", aftermath: .vanished)
    let outcomes = try rescue()
    #expect(outcomes.map(\.text) == ["web: has already ended"] && !outcomes[0].isFailure)
  }

  @Test("A worker whose cgroup can't be used is reported and left as it is")
  func noGroup() throws {
    try leave("web", "suspended")
    means.refusal = "no such cgroup"
    let outcomes = try rescue()
    #expect(
      outcomes.map(\.text) == ["web: can't be woken: no such cgroup"] && outcomes[0].isFailure)
    #expect(means.calls == [] && records.contains("web"))
  }

  @Test("The keeper's descriptors of processes that live are used, and it ends when all are awake")
  func keeper() throws {
    try leave("web", "suspended")
    let own = try ProcessStat.read(getpid()).identity
    let null = try Descriptor.open("/dev/null", O_RDONLY)
    means.handover = [own: null, ProcessIdentity(pid: getpid(), startTime: 1): null]
    _ = try rescue()
    #expect(means.memories == [[getpid()]])
    #expect(means.calls == ["wake web", "the keeper ends"])
  }

  @Test("The keeper stays for a later daemon while a worker couldn't be woken")
  func keeperStays() throws {
    try leave("web", "suspended")
    means.handover = [:]
    means.failures["web"] = HibernationError(.reading, "no memory", aftermath: .intact)
    _ = try rescue()
    #expect(means.calls == ["wake web"])
  }

  @Test("The keeper stays when the records can't be read, because no worker was woken")
  func unreadable() throws {
    try leave("web", "suspended")
    means.handover = [:]
    means.first = { [state] in _ = rename(state.workers, state.workers + "-away") }
    let outcomes = try rescue()
    #expect(outcomes.count == 1 && outcomes[0].isFailure)
    #expect(outcomes.first?.text.hasPrefix("can't look for workers: ") == true)
    #expect(means.calls == [])
  }

  @Test("The keeper stays when a record is damaged, because its worker wasn't woken")
  func damaged() throws {
    try leave("web", "suspended")
    try scratch.write("state/workers/api.worker", "no record")
    means.handover = [:]
    let outcomes = try rescue()
    #expect(outcomes.count == 2 && outcomes.contains { $0.isFailure && $0.worker == nil })
    #expect(means.calls == ["wake web"])
  }
}
