import Glibc
import Hibernation
import Linux
import TestSupport
import Testing

@testable import Daemon
@testable import Supervision

@Suite("Workers of a daemon that no other one follows") struct OfflineRecoveryTests {
  private let scratch: Scratch
  private let state: StateDirectory
  private let records: WorkerRecordStore
  private let processes = FakeProcesses()

  init() throws {
    scratch = try Scratch()
    state = try StateDirectory(path: scratch.path + "/state")
    records = try WorkerRecordStore(directory: state.workers)
  }

  private func leave(
    _ name: String, _ workerState: String, image: Bool = false, cgroup: String? = nil
  ) throws {
    var record = WorkerRecord(
      name: name, process: try ProcessStat.read(getpid()).identity, session: getpid(),
      bootID: "boot", command: [name], directory: "/", logPath: "/dev/null", state: workerState)
    record.cgroupPath = cgroup
    record.imagePath = image ? state.image(of: name) : nil
    try records.save(record)
    if image { try scratch.write("state/images/\(name).image", "its memory") }
  }

  private func fail(_ name: String, _ error: HibernationError) {
    processes.set { $0.failures[name] = error }
  }

  /// Runs a recovery and returns what it reports, in order.
  private func recover() throws -> [OfflineRecovery.Outcome] {
    var outcomes: [OfflineRecovery.Outcome] = []
    try OfflineRecovery(state, processes, bootID: "boot").run { outcomes.append($0) }
    return outcomes
  }

  @Test func `Each living worker is woken, in order, and recorded as awake`() throws {
    try leave("web", "suspended")
    try leave("api", "hibernated", image: true)
    try leave("old", "suspended")
    processes.set {
      $0.ended = ["old"]
      $0.restored = 8192
    }
    let outcomes = try recover()
    #expect(processes.recoveries == ["wake api", "wake web"])
    #expect(processes.expected == [.hibernated, .awake()], "only api's memory is in an image")
    #expect(outcomes.map(\.worker) == ["api", "web"] && outcomes.allSatisfy { !$0.isFailure })
    #expect(outcomes.first?.text == "api: runs as pid \(getpid()), 8 KB of memory restored")
    let api = try records.load("api")
    #expect(api.state == "background" && api.imagePath == nil && api.imageMark == nil)
    #expect(try records.load("web").state == "background")
  }

  @Test func `A hibernated worker without its image is ended: its memory is lost`() throws {
    try leave("web", "hibernated")
    let outcomes = try recover()
    #expect(processes.recoveries == ["end web"])
    #expect(outcomes.count == 1 && outcomes[0].isFailure)
    #expect(outcomes[0].text.contains("does not exist any more"))
    #expect(!records.contains("web"))
  }

  @Test func `A worker whose memory can't be verified is ended and forgotten`() throws {
    try leave("web", "hibernated", image: true)
    try scratch.write("state/images/web.image.base", "its memory")
    fail("web", HibernationError(.reading, "damaged", aftermath: .unverifiable))
    let outcomes = try recover()
    #expect(processes.recoveries == ["wake web", "end web"])
    #expect(outcomes[0].text.contains("terminated: its memory can't be restored: damaged"))
    #expect(try !records.contains("web") && listDirectory(state.images).isEmpty)
  }

  @Test func `The image of other processes stays when a worker is ended`() throws {
    try leave("web", "hibernated")
    try scratch.writeImage("state/images/web.image", of: [.current(of: getpid())])
    fail("web", HibernationError(.reading, "of another worker", aftermath: .unverifiable))
    _ = try recover()
    #expect(processes.recoveries == ["wake web", "end web"])
    #expect(!records.contains("web") && !isAbsent(state.image(of: "web")))
  }

  @Test func `A worker that can't be ended keeps its image and its record`() throws {
    try leave("web", "hibernated", image: true)
    fail("web", HibernationError(.reading, "damaged", aftermath: .unverifiable))
    processes.set { $0.unkillable = ["web"] }
    let outcomes = try recover()
    #expect(outcomes[0].isFailure && outcomes[0].text.contains("ending it failed: SIGKILL has no"))
    #expect(records.contains("web") && !isAbsent(state.image(of: "web")))
  }

  @Test func `A worker that can't be woken stays asleep, and the others are woken`() throws {
    try leave("api", "hibernated", image: true)
    try leave("web", "suspended")
    fail("api", HibernationError(.reading, "no memory", aftermath: .intact))
    let outcomes = try recover()
    #expect(outcomes.map(\.isFailure) == [true, false])
    #expect(outcomes[0].text.hasSuffix("it stays asleep"))
    #expect(try records.load("api").state == "hibernated" && !isAbsent(state.image(of: "api")))
    #expect(!processes.recoveries.contains("end api"))
  }

  @Test func `A worker that ended meanwhile is no failure`() throws {
    try leave("web", "suspended")
    fail("web", HibernationError(.reading, "gone", aftermath: .vanished))
    let outcomes = try recover()
    #expect(outcomes.map(\.text) == ["web: has already ended"] && !outcomes[0].isFailure)
  }

  @Test func `A worker whose cgroup can't be used is reported and left as it is`() throws {
    try leave("web", "suspended", cgroup: "/no/such/group")
    let outcomes = try recover()
    #expect(outcomes.count == 1 && outcomes[0].isFailure)
    #expect(outcomes.first?.text.hasPrefix("web: can't be woken: ") == true)
    #expect(processes.recoveries == [] && records.contains("web"))
  }

  @Test func `No worker is woken when the records can't be read`() throws {
    try leave("web", "suspended")
    var outcomes: [OfflineRecovery.Outcome] = []
    let recovery = try OfflineRecovery(state, processes, bootID: "boot")
    _ = rename(state.workers, state.workers + "-away")
    recovery.run { outcomes.append($0) }
    #expect(outcomes.count == 1 && outcomes[0].isFailure)
    #expect(outcomes.first?.text.hasPrefix("can't look for workers: ") == true)
    #expect(processes.recoveries == [])
  }

  @Test func `A damaged record is reported, and the other workers are woken`() throws {
    try leave("web", "suspended")
    try scratch.write("state/workers/api.worker", "no record")
    let outcomes = try recover()
    #expect(outcomes.count == 2 && outcomes.contains { $0.isFailure && $0.worker == nil })
    #expect(processes.recoveries == ["wake web"])
  }
}
