import DaemonFakes
import Glibc
import Hibernation
import Lifecycle
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("Operations on a worker's processes and memory") struct KernelMemoryTests {
  private let world: AdapterWorld

  init() throws { world = try AdapterWorld() }

  /// Starts a process of the test's own, which the daemon manages as a worker's.
  private func launchSleeper(_ state: WorkerState) throws -> (WorkerUnit, SpawnedProcess) {
    let child = try SpawnedProcess.forTest()
    let worker = try world.add("web", state)
    worker.process = try .forTest(child.identity)
    return (worker, child)
  }

  @Test func `A worker's processes are stopped, and its inputs watched until it runs`() throws {
    let (worker, child) = try launchSleeper(.suspending)
    defer { child.endForTest() }
    world.sleeps.makeSleep(for: worker)
    let sleep = try #require(worker.sleep)
    sleep.suspend()
    #expect(sleep.isActing)
    try world.turn { world.notes.events.contains("suspended") }
    #expect(worker.wakeWatch?.isWatching == true && worker.asleepSince != nil)
    #expect(try ProcessStat.read(child.pid).state == .stopped)
    sleep.resume()
    try world.turn { world.notes.events.contains("resumed") }
    #expect(worker.wakeWatch?.isWatching == false && worker.asleepSince == nil)
    #expect(try eventually { try ProcessStat.read(child.pid).state != .stopped })
  }

  private enum Record: CaseIterable { case there, late, missing }

  /// The outcome of a hibernation, and the files that it leaves.
  private func hibernate(with record: Record) throws -> (outcome: String, left: [String]) {
    let (worker, child) = try launchSleeper(.hibernating)
    defer { child.endForTest() }
    sendSignal(SIGSTOP, to: child.pid)
    let gate = ThreadGate()
    defer { gate.open() }
    let records = world.services.records
    if record == .late { records.afterSaves { gate.pass() } }
    if record != .missing { world.recordWriter.save(worker, state: .launching) }
    let timeout = record == .late ? Duration.milliseconds(50) : .seconds(60)
    let memory = world.makeMemory(recordTimeout: timeout)
    var outcome: String?
    let order = HibernationOrder(
      target: try #require(worker.target()), rules: worker.configuration.policy.hibernate,
      isMemoryShort: false)
    let operation = memory.hibernate(order) {
      switch $0.result {
      case .success: outcome = "hibernated"
      case .failure(let error): outcome = error.description
      }
    }
    #expect(outcome == nil)
    try world.turn { outcome != nil }
    #expect(!operation.isRunning)
    let left = try listDirectory(world.state.images).filter { $0.hasPrefix("web.image") }
    gate.open()
    records.drain()
    #expect(records.contains("web") == (record != .missing))
    records.remove("web")
    unlink(world.state.image(of: "web"))
    return (outcome ?? "none", left)
  }

  @Test func `An image gets its name only when the worker's record is on the disk`() throws {
    let (outcome, left) = try hibernate(with: .there)
    // If the outcome is another one, this machine can't hibernate the process.
    guard outcome == "hibernated" else { return }
    #expect(left == ["web.image"])
    let late = try hibernate(with: .late)
    #expect(late.outcome.hasPrefix("its record isn't on the disk after 50 ms") && late.left.isEmpty)
    let missing = try hibernate(with: .missing)
    #expect(missing.outcome.hasPrefix("its record can't be written") && missing.left.isEmpty)
  }

  @Test func `After a failed recovery, the worker's record still names its image`() throws {
    let (worker, child) = try launchSleeper(.resuming)
    defer { child.endForTest() }
    world.sleeps.makeSleep(for: worker)
    let path = world.state.image(of: "web")
    try world.scratch.write("state/images/web.image", "memory")
    // A damaged record of a trim fails the recovery, and the worker stays as it is.
    try world.scratch.write("state/trims/web", "damaged")
    let mark = try #require(ImageMark(text: "1-2-3-4"))
    let directory = try #require(ImageDirectory(of: path))
    var outcome: RecoveryOutcome?
    _ = world.makeMemory().recover(
      try #require(worker.target()), expecting: .image(mark, in: directory)
    ) { outcome = $0 }
    try world.turn { outcome != nil }
    let error = #expect(throws: HibernationError.self) { try outcome?.result.get() }
    #expect(error?.aftermath == .intact)
    worker.sleep?.adopt(asleepWith: outcome?.image)
    let record = try #require(world.recordWriter.record(of: worker, state: .hibernated))
    #expect(record.state == "hibernated" && record.imagePath == path)
    #expect(record.imageMark == mark.text && record.imageDirectory == directory.text)
  }

  @Test func `An image that isn't there because its directory is away counts as left`() throws {
    let away = RecoveryOutcome(
      result: .failure(HibernationError(.reading, "away")), imageAt: "/nowhere/web.image",
      expecting: .unknown(in: try #require(ImageDirectory(text: "1-2"))))
    #expect(away.image?.path == "/nowhere/web.image" && away.image?.length == nil)
    let none = RecoveryOutcome(
      result: .failure(HibernationError(.reading, "none")), imageAt: "/nowhere/web.image",
      expecting: .unknown())
    #expect(none.image == nil)
  }

  @Test func `The images of an ended worker are removed, for which the next waits`() throws {
    let image = world.state.image(of: "web")
    let base = Hibernator.basePath(of: image)
    let memory = world.makeMemory()
    try world.scratch.writeImage("state/images/web.image", of: [])
    try world.scratch.write("state/images/" + base.dropFirst(world.state.images.count + 1), "base")
    var isReported = false
    memory.removeImage(of: "web", isUnreadableNeeded: false) { isReported = true }()
    #expect(isAbsent(image) && isAbsent(base) && !isReported)
    try world.turn { isReported }

    // A launch that is refused because a process of an earlier instance runs ends like a run.
    try world.scratch.writeImage("state/images/web.image", of: [.current(of: getpid())])
    try world.scratch.write("state/images/" + base.dropFirst(world.state.images.count + 1), "base")
    memory.removeImage(of: "web", isUnreadableNeeded: false, then: nil)()
    #expect(fileExists(image) && fileExists(base))
    #expect(world.logged.contains("web: its image \(image) is kept: "))
  }
}
