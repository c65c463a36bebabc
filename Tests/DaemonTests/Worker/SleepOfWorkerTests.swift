import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

/// What surrounds one run of a worker; it notes what it is asked.
private final class Surroundings: SleepSurroundings {
  var calls: [String] = []

  func whenReadyToSuspend(then: @escaping () -> Void) { calls.append("ask") }
  func watchManager(_ watch: SleepWatch?) { calls.append("manager") }
  func keeperStart() -> @Sendable () -> Void { {} }
  func resumePreference(_ rules: HibernationRules) -> ResumePreference { .auto }
  func hasHibernated(
    _ summary: HibernationSummary, from before: ByteCount, took duration: Duration
  ) {
    calls.append("hibernated")
  }
  func sendAwake(why: String?) { calls.append(why ?? "awake") }
  func wakeWhenReleased() { calls.append("released") }
  func kill() { calls.append("kill") }
  func rootHasEnded() { calls.append("root") }
}

@Suite("A sleep's hold on its worker") struct SleepOfWorkerTests {
  private let scratch: Scratch
  private let services: Services
  private let driver: EngineDriver
  private let world = WakeWorld()
  private let surroundings = Surroundings()
  private let looks = Looks()

  private final class Looks {
    var count = 0
    var last: ((ImageDisk?) -> Void)?
  }

  init() throws {
    scratch = try Scratch()
    services = try Services(
      log: DaemonLog(), records: WorkerRecordKeeper(directory: scratch.path),
      hibernation: HibernationService(lanes: 1))
    driver = EngineDriver(
      Engine(policy: LifecyclePolicy(name: "test")), clock: world.timers,
      replies: RequestReplies(FakeSavedState(), timers: world.timers))
  }

  private func makeRuntime() -> WorkerUnit {
    WorkerUnit(
      configuration: WorkerConfiguration(name: "web", command: ["serve"]), environment: [:],
      isDeclared: true)
  }

  private func makeSleep(
    of runtime: WorkerUnit, _ watch: WakeWatch, recordPatience: Duration = .seconds(60)
  ) -> SleepOfWorker {
    let disk = ImageDiskMonitor(
      directory: scratch.path, ledger: WriteLedger(path: "\(scratch.path)/writes"),
      ImageDiskMonitor.Needs(
        look: { [looks] in
          looks.count += 1
          looks.last = $0
        }, send: { _ in }, save: { _ in }, time: { 0 },
        log: { _, _ in }))
    return SleepOfWorker(
      runtime: runtime, services: services, driver: driver, imageDisk: disk,
      image: "\(scratch.path)/web.image", wakeWatch: watch, surroundings: surroundings,
      recordPatience: recordPatience)
  }

  private func turn(until isDone: () -> Bool) throws {
    let deadline = EventLoop.now + .seconds(60)
    while !isDone(), EventLoop.now < deadline { try services.loop.turn(until: deadline) }
  }

  @Test("Operations on a worker without a process do nothing, and report that later")
  func noProcess() throws {
    let runtime = makeRuntime()
    let sleep = makeSleep(of: runtime, world.makeWatch())
    var outcomes: [String] = []
    func note<Value, Problem>(_ outcome: Result<Value, Problem>) {
      if case .failure(let error) = outcome { outcomes.append("\(error)") }
    }
    sleep.suspend(isRestoring: false) { note($0) }
    sleep.hibernate { note($0) }
    sleep.thaw(isStopped: true) { outcomes.append($0 ?? "it runs") }
    sleep.restore(from: ImageOnDisk(path: "/none", length: 1)) {
      note($0)
    }
    sleep.recover(expecting: .unknown) { note($0.result) }
    sleep.look { rest, image in outcomes.append(rest == nil && image == nil ? "no rest" : "rests") }
    #expect(outcomes.isEmpty && !sleep.isUnderWay)
    try turn { outcomes.count == 6 }
    #expect(outcomes.count == 6 && outcomes.last == "no rest" && outcomes[2] == "it has no process")
    #expect(outcomes.filter { $0.contains("it has no process") }.count == 5)
    #expect(!sleep.mayBegin && surroundings.calls.isEmpty)
    sleep.whenReadyToSuspend {}
    #expect(surroundings.calls.isEmpty, "it hears of no suspension that isn't begun")
    withExtendedLifetime(runtime) {}
  }

  @Test("A worker's watch ends before it is notified of its wake, and the disk is looked at again")
  func awake() throws {
    let runtime = makeRuntime()
    let watch = world.makeWatch()
    let sleep = makeSleep(of: runtime, watch)
    watch.listen(at: .success(try FakeInputs()) as Result<FakeInputs, SystemCallError>)
    sleep.isAwake(why: "it was not suspended", fromImage: false)
    #expect(world.watches.active == 1 && looks.count == 0)
    sleep.isAwake(why: nil, fromImage: true)
    #expect(world.watches.active == 0 && looks.count == 1)
    #expect(surroundings.calls == ["it was not suspended", "awake"])
    withExtendedLifetime(runtime) {}
  }

  /// A process of the test's own, and what the daemon holds of it.
  private func launchSleeper(in runtime: WorkerUnit) throws -> SpawnedProcess {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let child = try spawn(
      SpawnRequest(
        path: "/bin/sleep", arguments: ["sleep", "1000"], environment: [:], directory: "/",
        input: null.raw, output: null.raw, error: null.raw, cgroup: nil))
    runtime.process = try .forTest(child.identity)
    return child
  }

  @Test(
    "A suspended worker's inputs are watched when the outcome counts, and not when it comes too late",
    arguments: [true, false])
  func fallsAsleep(counts: Bool) throws {
    let runtime = makeRuntime()
    let child = try launchSleeper(in: runtime)
    defer {
      sendSignal(SIGKILL, to: child.pid)
      waitpid(child.pid, nil, 0)
    }
    let sleep = makeSleep(of: runtime, world.makeWatch())
    var failure: String?
    var hasEnded = false
    sleep.suspend(isRestoring: false) { outcome in
      if case .failure(let refusal) = outcome { failure = refusal.text }
      hasEnded = true
      if counts { sleep.fallsAsleep() }
    }
    // The disk is looked at meanwhile.
    #expect(looks.last != nil && !hasEnded)
    if counts { looks.last?(nil) } else { try turn { !sleep.isUnderWay } }
    #expect(!hasEnded)
    if !counts { looks.last?(nil) }
    try turn { hasEnded }
    #expect(failure == nil && hasEnded)
    // What is said later is of no outcome.
    sleep.fallsAsleep()
    #expect(sleep.isWatched == counts && (runtime.asleepSince != nil) == counts)
  }

  private enum Record: CaseIterable { case there, late, missing }

  /// What a hibernation ends with, and the files that it leaves.
  private func hibernate(with record: Record) throws -> (outcome: String, left: [String]) {
    let runtime = makeRuntime()
    let child = try launchSleeper(in: runtime)
    defer {
      sendSignal(SIGKILL, to: child.pid)
      waitpid(child.pid, nil, 0)
    }
    sendSignal(SIGSTOP, to: child.pid)
    let gate = ThreadGate()
    defer { gate.open() }
    if record == .late { services.records.afterSaves { gate.pass() } }
    let writer = WorkerRecordWriter(records: services.records, bootID: "boot", log: DaemonLog())
    if record != .missing { writer.save(runtime, state: .launching) }
    let sleep = makeSleep(
      of: runtime, world.makeWatch(),
      recordPatience: record == .late ? .milliseconds(50) : .seconds(60))
    var outcome: String?
    sleep.hibernate {
      switch $0 {
      case .success: outcome = "hibernated"
      case .failure(let error): outcome = error.description
      }
    }
    #expect(outcome == nil)
    try turn { outcome != nil }
    let left = try listDirectory(scratch.path).filter { $0.hasPrefix("web.image") }
    gate.open()
    services.records.drain()
    #expect(services.records.contains("web") == (record != .missing))
    services.records.remove("web")
    unlink("\(scratch.path)/web.image")
    return (outcome ?? "none", left)
  }

  @Test(
    "An image gets its name when a later daemon would find the worker: without a record it would be removed"
  )
  func recorded() throws {
    let (outcome, left) = try hibernate(with: .there)
    // Otherwise this machine can't hibernate it.
    guard outcome == "hibernated" else { return }
    #expect(left == ["web.image"])
    let late = try hibernate(with: .late)
    #expect(late.outcome.hasPrefix("its record isn't on the disk after 50 ms") && late.left.isEmpty)
    let missing = try hibernate(with: .missing)
    #expect(missing.outcome.hasPrefix("its record can't be written") && missing.left.isEmpty)
  }

  @Test("A failed wake is repeated, and once more when the worker's threads are released")
  func staysAsleep() throws {
    let runtime = makeRuntime()
    let watch = world.makeWatch()
    let sleep = makeSleep(of: runtime, watch)
    let inputs = try FakeInputs()
    inputs.waiting = "a request"
    watch.listen(at: .success(inputs) as Result<FakeInputs, SystemCallError>)
    sleep.isSuspended()
    sleep.staysAsleep()
    #expect(world.wakes == ["a request", "a request"] && surroundings.calls == ["released"])
    withExtendedLifetime(runtime) {}
  }

  @Test("The end of an operation doesn't end a worker that runs on")
  func goesOn() {
    let runtime = makeRuntime()
    let sleep = makeSleep(of: runtime, world.makeWatch())
    sleep.operationHasEnded()
    #expect(surroundings.calls.isEmpty && !sleep.hasEnded)
    withExtendedLifetime(runtime) {}
  }

  @Test("No operation acts on a worker that has been freed")
  func gone() {
    let sleep = makeSleep(of: makeRuntime(), world.makeWatch())
    #expect(sleep.hasEnded && !sleep.mayBegin)
    sleep.isAwake(why: nil, fromImage: true)
    sleep.staysAsleep()
    sleep.operationHasEnded()
    #expect(surroundings.calls.isEmpty && looks.count == 0)
  }
}
