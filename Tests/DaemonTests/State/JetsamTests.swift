import Control
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("Jetsam reports on disk") struct JetsamStoreTests {
  private let scratch: Scratch
  private let store: JetsamStore

  init() throws {
    scratch = try Scratch()
    store = JetsamStore(directory: "\(scratch.path)/jetsam")
  }

  private func record(_ id: String) -> JetsamRecord {
    JetsamRecord(
      id: id, time: "2026-11-22T12:00:00Z", policy: "test", level: "critical",
      why: CodedText("pressure", "the machine has no memory left"), budget: 100,
      availableBefore: 1, availableAfter: 2, largest: nil, workers: [], host: nil)
  }

  private func id(_ number: Int) -> String { "20261122T12\(1000 + number)" }

  @Test func `The newest 100 reports are kept, the newest first, and other files stay`() throws {
    try scratch.write("jetsam/notes.txt", "")
    for number in 0..<103 { try store.save(record(id(number))) }
    #expect(store.ids() == (3..<103).reversed().map(id))
    #expect(store.load(id(2)) == nil && store.load(id(3))?.id == id(3))
    #expect(fileExists("\(scratch.path)/jetsam/notes.txt"))
  }

  @Test func `A damaged report, and one in another directory, isn't found`() throws {
    try scratch.write("jetsam/20261122T120000.json", "{")
    try scratch.write("other.json", "{}")
    try store.save(record(id(1)))
    #expect(store.load("20261122T120000") == nil)
    for id in ["../other", "", ".", "..", ".hidden", "none"] { #expect(store.load(id) == nil) }
    #expect(store.load(id(1)) != nil)
  }

  @Test func `A directory that can't be read has no reports, and can't get any`() {
    #expect(store.ids().isEmpty)
    #expect(throws: SystemCallError.self) { try store.save(record(id(1))) }
  }
}

@Suite("Jetsam reports that are kept") struct JetsamKeeperTests {
  private let scratch: Scratch
  private let loop: EventLoop
  private let loopReturn: LoopReturn
  private let disk = WorkQueue(name: "test-disk")
  private let keeper: JetsamKeeper
  private let policy = LifecyclePolicy(name: "test")

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    loopReturn = try LoopReturn(loop)
    keeper = JetsamKeeper(directory: scratch.path, disk: disk, loop: loopReturn, log: DaemonLog())
  }

  private func load(_ id: String) throws -> JetsamRecord? {
    var records: [JetsamRecord?] = []
    keeper.load(id) { records.append($0) }
    try loop.turn { !records.isEmpty }
    #expect(records.count == 1)
    return records.first ?? nil
  }

  private func report() -> JetsamReport {
    JetsamReport(
      at: .zero, level: .critical, why: "the machine has no memory left", budget: ByteCount(100),
      availableBefore: ByteCount(1), availableAfter: ByteCount(2), largest: WorkerID("web"),
      entries: [])
  }

  @Test func `A report has the memory before its burst's first victim`() throws {
    let engine = Engine(policy: policy)
    keeper.recordVictim(engine, stall: (some: 1, full: 2))
    keeper.recordVictim(engine, stall: (some: 3, full: 4))
    keeper.keep(report(), policy: policy)
    keeper.keep(report(), policy: policy)
    #expect(keeper.ids.count == 2 && Set(keeper.ids).count == 2)
    let first = try #require(keeper.ids.last)
    let record = try #require(try load(first))
    #expect(record.id == first && record.policy == "test" && record.level == "critical")
    #expect(record.largest == "web" && record.budget == 100)
    #expect(record.host?.someStall == 1 && record.host?.fullStall == 2)
    #expect((record.host?.total ?? 0) > 0)
    #expect(try load(#require(keeper.ids.first))?.host == nil, "no victim was noted for it")
  }

  private static let processes = JetsamRecord.Processes(
    list: [.init(pid: 7, name: "browser", resident: 99)], isComplete: true)

  @Test func `A report has the machine's largest processes, found early or late`() throws {
    var answers: [(JetsamRecord.Processes?) -> Void] = []
    keeper.measure = { answers.append($0) }
    let engine = Engine(policy: policy)
    keeper.recordVictim(engine, stall: nil)
    keeper.recordVictim(engine, stall: nil)
    #expect(answers.count == 1, "a burst is looked at once")
    answers.last?(Self.processes)
    keeper.keep(report(), policy: policy)
    #expect(try load(#require(keeper.ids.first))?.largestProcesses == Self.processes)
    keeper.recordVictim(engine, stall: nil)
    keeper.keep(report(), policy: policy)
    let late = try #require(keeper.ids.first)
    #expect(try load(late)?.largestProcesses == nil)
    answers.last?(Self.processes)
    #expect(try load(late)?.largestProcesses == Self.processes)
    #expect(keeper.ids.count == 2)
    keeper.recordVictim(engine, stall: nil)
    keeper.keep(report(), policy: policy)
    answers.last?(nil)
    #expect(try load(#require(keeper.ids.first))?.largestProcesses == nil, "the look took too long")
  }

  @Test func `A report of an earlier version, without processes, is read`() throws {
    let record = try WireCodec.decode(
      JetsamRecord.self,
      from: Array(
        (#"{"id":"a","time":"t","policy":"p","level":"critical","why":"x","budget":1,"#
          + #""availableBefore":1,"availableAfter":1,"workers":[]}"#).utf8))
    #expect(record.largestProcesses == nil && record.why.code == "other")
  }

  @Test func `Reports of an earlier daemon are found, and a new one gets another name`() throws {
    keeper.keep(report(), policy: policy)
    _ = try load(try #require(keeper.ids.first))
    let next = JetsamKeeper(directory: scratch.path, disk: disk, loop: loopReturn, log: DaemonLog())
    #expect(next.ids == keeper.ids)
    #expect(next.newID(at: "2026-11-22T12:00:00Z") == "20261122T120000")
    let taken = try #require(next.ids.first)
    #expect(next.newID(at: taken) == "\(taken)-2")
  }
}
