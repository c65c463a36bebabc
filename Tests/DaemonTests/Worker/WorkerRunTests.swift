import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("A run of a worker")
struct WorkerRunTests {
  private let timers = FakeLoop()
  private let watches = FakeLoop()
  private let wakes: SleepWorld

  init() throws { wakes = try SleepWorld() }

  /// Fills every property that a test can fill. The test's own process represents the worker's root
  /// process.
  private func fill(_ worker: WorkerUnit, _ world: ConversationWorld) throws {
    let process = try WorkerProcess.forTest()
    let run = worker.run
    run.process = process
    run.exitWatch = try watches.whenReadable(process.pidfd) {}
    let end = try WorkerEndWorld(timers)
    run.ending = end.ending
    run.conversation = try world.begin()
    let adapters = try AdapterWorld()
    run.readiness = ReadinessWatch(
      .notify, process, of: adapters.handle(worker), heldBy: adapters.processes)
    let shed = try ShedWorld()
    let monitor = LivenessMonitor(
      Policy.Probe(.tcp(host: "127.0.0.1", port: 80)), timers: timers,
      question: shed.questions.question)
    monitor.runs(since: timers.now)
    run.liveness = monitor
    run.shed = try shed.begin(nil)
    run.questions = [shed.questions.question]
    wakes.sleeps.makeSleep(for: worker)
    // The end waits for an operation, and for the outcome of a SIGKILL.
    end.actOnMemory()
    end.ending.kill()
    end.ending.rootDidEnd()
    run.launched = worker.configuration
    run.returnsToFront = true
    run.lastHibernation = LastHibernation(
      written: 1, unchanged: 2, seconds: 3, footprintBefore: .zero)
    run.asleepSince = .zero
    run.sleepers = [process.identity]
    run.watchdogInterval = .seconds(1)
    run.actionAfterQuestions = {}
    run.kernelKills.begin(onMachine: 1, limits: nil)
    run.sample.cpu = 1
    run.measuring.didMoveMemory()
    let wakeWatch = wakes.makeWatch()
    wakeWatch.listen(at: .success(try FakeInputs()))
    wakeWatch.timer.set(at: .zero, "a timer that it has set")
    run.wakeWatch = wakeWatch
    withExtendedLifetime((end, shed, adapters)) {}
  }

  /// Every stored property, and its value as text.
  private func properties(_ subject: Any) -> [String: String] {
    var all: [String: String] = [:]
    for (label, value) in Mirror(reflecting: subject).children {
      all[label ?? "?"] = String(describing: value)
    }
    return all
  }

  /// A new property of `WorkerRun` must be filled by `fill`, or be listed here because its
  /// component has its own suite.
  private static let ofOthers: Set = [
    "activityProbe", "managerWatch", "masters", "traffic", "waits",
  ]

  @Test func `Closing a run leaves every property as in a new run, and no watch or timer`() throws {
    let (worker, world) = (WorkerUnit.forTest("web"), try ConversationWorld())
    let new = properties(WorkerRun())
    let profile = worker.profile
    try fill(worker, world)
    let filled = properties(worker.run)
    let untouched = Set(new.keys.filter { new[$0] == filled[$0] })
      // If the kernel doesn't count its kills, there is nothing to fill.
      .subtracting(MemoryInfo.killedForMemory() == nil ? ["kernelKills"] : [])
    #expect(
      untouched == Self.ofOthers,
      "a property of `WorkerRun` isn't filled by this test, or has become fillable")
    #expect(wakes.watches.active == 1 && !wakes.timers.pending.isEmpty)
    #expect(watches.active == 1 && world.watches.active > 0 && !timers.pending.isEmpty)
    let run = worker.run
    let paths = worker.daemonSockets
    #expect(paths.count == 3)

    worker.endRun(watches)

    #expect(worker.run !== run)
    #expect(properties(worker.run) == new)
    #expect(worker.profile == profile)
    #expect(watches.active == 0, "the watch for the root process's end")
    #expect(world.watches.active == 0, "the conversation's")
    #expect(try eventually { paths.allSatisfy { access($0, F_OK) != 0 } })
    #expect(timers.pending.isEmpty)
    #expect(wakes.watches.active == 0 && wakes.timers.pending.isEmpty, "what wakes it")
  }

  @Test func `A closed run gets no further events`() throws {
    let (worker, world) = (WorkerUnit.forTest("web"), try ConversationWorld())
    try fill(worker, world)
    let run = worker.run
    worker.endRun(watches)
    let next = properties(worker.run)
    run.ending?.rootDidEnd()
    run.ending?.kill()
    run.sleep?.suspend()
    timers.advance(by: .seconds(600))
    #expect(properties(worker.run) == next)
    #expect(!worker.hasExited && !worker.isKilled && !worker.isReaped)
    #expect(timers.pending.isEmpty)
  }

  @Test func `All state of a run is in its own value, except for the properties named here`() {
    #expect(
      Set(properties(WorkerUnit.forTest("web")).keys) == [
        "id", "_configuration", "environment", "isDeclared", "external", "run",
        // Stored descriptors are kept from one run to the next.
        "stored",
        // The next run waits for the removal before it writes an image.
        "imageRemoval",
        // This counts all runs, for the metrics.
        "imageBytesWritten",
      ])
  }

  @Test func `A run lists the configuration keys that have changed since its launch`() {
    let worker = WorkerUnit.forTest("web")
    #expect(worker.keysChangedSinceLaunch.isEmpty, "it doesn't run")
    worker.launched = worker.configuration
    worker.configuration.command = ["sleep", "2"]
    worker.configuration.importance = 5
    #expect(worker.keysChangedSinceLaunch == ["command"])
    worker.endRun(watches)
    #expect(worker.keysChangedSinceLaunch.isEmpty)
  }
}
