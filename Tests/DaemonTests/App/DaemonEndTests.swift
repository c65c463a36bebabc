import Lifecycle
import Testing

@testable import Daemon

/// Workers that end, wake and are given back when a test says so.
private final class World: DaemonEndHost, OrderlyStopHost {
  private var known: [String: EndingWorker] = [:]
  private var needs: [String: [WorkerID]] = [:]
  private(set) var calls: [String] = []
  private(set) var lines: [String] = []
  private var answers: [String: (Answer) -> Void] = [:]
  private var releases: [String: (String?) -> Void] = [:]

  var workers: [EndingWorker] { known.values.sorted { $0.id < $1.id } }
  var isAdopting: Bool { known.values.contains(where: \.isAdopting) }
  var isEngineQuiet = true
  let timers = FakeTimers()

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("wake \(id)")
    answers[id.name] = answer
  }
  var alive: [WorkerID] { workers.filter(\.isAlive).map(\.id) }
  func needs(of id: WorkerID) -> [WorkerID] { needs[id.name] ?? [] }
  func isExternal(_ id: WorkerID) -> Bool { known[id.name]?.isExternal == true }
  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("stop \(id)")
    answers[id.name] = answer
  }
  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void) {
    calls.append("release \(id)")
    releases[id.name] = then
  }
  func freezes(_ id: WorkerID) -> Bool { id.name == "frozen" }
  func refuseWaitingStarts() {
    if calls.last != "refuse starts" { calls.append("refuse starts") }
  }
  func save(_ id: WorkerID, _ state: WorkerState) { calls.append("save \(id) \(state)") }
  func closeListeners() { calls.append("close listeners") }
  func announceEnd(_ text: String) { calls.append("announce") }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test does

  func add(_ name: String, _ state: WorkerState? = .background, needs: [String] = []) {
    known[name] = EndingWorker(id: WorkerID(name), state: state)
    self.needs[name] = needs.map { WorkerID($0) }
  }
  func set(_ name: String, _ change: (inout EndingWorker) -> Void) {
    if var worker = known[name] {
      change(&worker)
      known[name] = worker
    }
  }
  func remove(_ name: String) { known[name] = nil }
  func answer(_ name: String, _ code: Answer.Code = .done, _ text: String = "") {
    answers.removeValue(forKey: name)?(Answer(code, text))
  }
  func isReleased(_ name: String, _ failure: String? = nil) {
    if failure == nil { remove(name) }
    releases.removeValue(forKey: name)?(failure)
  }

  /// What was asked of workers, without what is done around that.
  var asked: [String] {
    calls.filter { $0.hasPrefix("stop") || $0.hasPrefix("wake") || $0.hasPrefix("release") }
  }
}

@Suite("The daemon's end") struct DaemonEndTests {
  private let world = World()
  private let end: DaemonEnd

  init() { end = Self.end(of: world) }

  private static func end(of world: World) -> DaemonEnd {
    DaemonEnd(
      host: world, stopping: OrderlyStop(world, timers: world.timers), timers: world.timers)
  }

  private func hasStopped(_ name: String) {
    world.set(name) { $0.state = .terminated }
    end.engineIsQuiet()
  }

  // MARK: with its workers

  @Test("A worker is stopped before those that it depends on")
  func order() {
    world.add("db")
    world.add("api", .hibernated, needs: ["db"])
    world.add("web", needs: ["api"])
    end.end()
    #expect(end.phase.isEnding && end.phase.isClosing)
    #expect(world.asked == ["stop web"])
    hasStopped("web")
    #expect(world.asked == ["stop web", "stop api"])
    hasStopped("api")
    #expect(world.asked == ["stop web", "stop api", "stop db"] && !end.hasEnded)
    hasStopped("db")
    #expect(end.hasEnded)
  }

  @Test("Workers that don't depend on each other are stopped at the same time, and each once")
  func atOnce() {
    world.add("one")
    world.add("two", .suspended)
    world.add("gone", .terminated)
    end.end()
    end.engineIsQuiet()
    end.engineIsQuiet()
    #expect(world.asked == ["stop one", "stop two"])
  }

  @Test("A worker that can't be killed doesn't delay the stop of those that it depends on")
  func unstoppable() {
    world.add("db")
    world.add("web", needs: ["db"])
    end.end()
    world.answer("web", .failed, "it can't be killed")
    #expect(world.asked == ["stop web", "stop db"])
    hasStopped("db")
    #expect(!end.hasEnded, "web still runs")
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("A worker that ends after a first refusal delays the stop of its dependencies until then")
  func slow() {
    world.add("db")
    world.add("web", needs: ["db"])
    end.end()
    world.answer("web", .refused, "busy")
    #expect(world.asked == ["stop web"])
  }

  @Test(
    "Without workers the daemon ends at once, and closes its sockets before it answers clients")
  func nothing() {
    end.end()
    #expect(end.hasEnded)
    #expect(world.calls == ["refuse starts", "close listeners", "announce"])
    #expect(world.lines == ["all workers have ended; the daemon ends"])
    end.engineIsQuiet()
    #expect(world.calls.count { $0 == "announce" } == 1)
  }

  @Test("A worker that is being adopted is stopped when its adoption has ended")
  func adopting() {
    world.add("web", .terminated)
    world.set("web") { $0.isAdopting = true }
    end.end()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    world.set("web") {
      $0.isAdopting = false
      $0.state = .terminating
    }
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("An external worker is released and not stopped, and the daemon waits for that")
  func external() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    world.add("ours")
    end.end()
    #expect(world.asked == ["release theirs", "stop ours"])
    hasStopped("ours")
    #expect(!end.hasEnded)
    world.isReleased("theirs")
    #expect(end.hasEnded)
  }

  @Test("An external worker that can't be woken keeps the daemon, and the next request tries again")
  func externalStays() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    end.end()
    end.end()
    #expect(world.asked == ["release theirs"], "the first one is still under way")
    world.isReleased("theirs", "its image can't be read")
    #expect(!end.hasEnded)
    #expect(
      world.lines == ["theirs: can't be released: its image can't be read; next attempt in 1 s"])
    end.end()
    #expect(world.asked == ["release theirs", "release theirs"])
    world.isReleased("theirs")
    #expect(end.hasEnded)
  }

  @Test("A release that failed is tried again after a growing pause, until it succeeds")
  func externalAgain() {
    world.add("theirs", .hibernated)
    world.set("theirs") { $0.isExternal = true }
    end.end()
    for (count, pause) in [1, 2, 4].enumerated() {
      world.isReleased("theirs", "its image can't be read")
      #expect(world.timers.pending == [.seconds(pause)] && world.asked.count == count + 1)
      world.timers.advance(by: .seconds(pause))
      #expect(world.asked.count == count + 2)
    }
    world.isReleased("theirs")
    #expect(end.hasEnded && world.timers.pending.isEmpty)
  }

  @Test("A stop that failed is requested again, and the daemon ends when the worker has ended")
  func stopAgain() {
    world.add("web", .hibernated)
    end.end()
    world.answer("web", .failed, "web could not be resumed")
    #expect(world.lines == ["web could not be resumed; it is asked to stop again in 1 s"])
    world.timers.advance(by: .seconds(1))
    #expect(world.asked == ["stop web", "stop web"])
    hasStopped("web")
    #expect(end.hasEnded)
  }

  @Test("A second signal ends the daemon at once and leaves the remaining workers running")
  func secondSignal() {
    world.add("web")
    end.signalHasCome()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    end.signalHasCome()
    #expect(end.hasEnded && world.asked == ["stop web"])
    #expect(world.lines.last?.hasSuffix("workers that still run are left running") == true)
    // Nothing more happens when the worker ends after all.
    hasStopped("web")
    #expect(!world.calls.contains("announce"))
  }

  // MARK: without them

  @Test("Workers that are left stay as they are, are recorded, and their sockets stay open")
  func leave() {
    world.add("awake", .foreground)
    world.add("frozen", .hibernated)
    world.set("frozen") { $0.restsFrozen = true }
    world.add("gone", .terminated)
    end.leave()
    #expect(end.hasEnded && end.phase.isLeaving && !end.phase.isEnding)
    #expect(
      world.calls == [
        "refuse starts", "save awake foreground", "save frozen hibernated", "announce",
      ])
    #expect(
      world.lines.last
        == "the daemon ends; 2 workers remain, 1 of them asleep until a daemon starts or "
        + "`dormouse recover` is run")
  }

  @Test(
    "A sleeping worker that only a signal or a tracer holds is woken before the daemon leaves it")
  func leaveStopped() {
    world.add("web", .suspended)
    end.leave()
    end.engineIsQuiet()
    #expect(world.asked == ["wake web"] && !end.hasEnded)
    world.set("web") { $0.state = .resuming }
    end.engineIsQuiet()
    world.set("web") { $0.state = .background }
    world.answer("web")
    #expect(end.hasEnded)
    #expect(world.lines.last == "the daemon ends; 1 worker remains")
  }

  @Test("While the daemon leaves, a worker that only a signal would hold isn't suspended again")
  func noSuspension() {
    #expect(end.refusalToSuspend(WorkerID("web")) == nil)
    end.leave()
    #expect(end.refusalToSuspend(WorkerID("web")) != nil)
    #expect(end.refusalToSuspend(WorkerID("frozen")) == nil)
  }

  @Test(
    "A sleeping worker that can't be woken is left asleep, although the answer comes last")
  func unwakeable() {
    world.add("web", .hibernated)
    end.leave()
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    world.answer("web", .failed, "web can't be woken: its image can't be read")
    #expect(end.hasEnded && world.asked == ["wake web"])
    #expect(world.calls.contains("save web hibernated"))
    #expect(world.lines.contains("web can't be woken: its image can't be read"))
  }

  @Test("The daemon leaves when no operation, no state change and no adoption is under way")
  func leaveWaits() {
    world.add("busy")
    world.set("busy") { $0.isBusy = true }
    world.add("passing", .suspending)
    world.add("adopted", .terminated)
    world.set("adopted") { $0.isAdopting = true }
    end.leave()
    world.set("busy") { $0.isBusy = false }
    end.engineIsQuiet()
    world.set("passing") { $0.state = .background }
    end.engineIsQuiet()
    #expect(!end.hasEnded)
    world.set("adopted") {
      $0.isAdopting = false
      $0.state = .background
    }
    end.engineIsQuiet()
    #expect(end.hasEnded && world.asked.isEmpty)
  }

  @Test("A start that waits for a dependency is refused when the daemon leaves its workers")
  func leaveRefusesStarts() {
    world.add("web", .launching)
    end.leave()
    #expect(world.calls == ["refuse starts"] && !end.hasEnded)
  }

  @Test("The daemon doesn't leave before the engine has handled every event")
  func leaveAfterEvents() {
    world.add("web", .suspended)
    end.leave()
    world.set("web") { $0.state = .background }
    // The answer is one of several outcomes of an event.
    world.isEngineQuiet = false
    world.answer("web")
    #expect(!end.hasEnded)
    world.isEngineQuiet = true
    end.engineIsQuiet()
    #expect(end.hasEnded)
  }

  @Test("A worker that has outlived SIGKILL doesn't keep a daemon that leaves, and is recorded")
  func leaveUnkillable() {
    world.add("web", .terminating)
    end.leave()
    #expect(!end.hasEnded)
    world.set("web") { $0.hasOutlivedKill = true }
    end.engineIsQuiet()
    #expect(end.hasEnded && world.asked.isEmpty)
    #expect(world.calls.contains("save web terminating"))
  }

  @Test(
    "A daemon that is ending refuses to leave its workers, and a second request to leave adds nothing"
  )
  func leaveLate() {
    world.add("web")
    end.end()
    end.leave()
    #expect(!end.phase.isLeaving && world.asked == ["stop web"])

    let other = World()
    other.add("web", .resuming)
    let leaving = Self.end(of: other)
    leaving.leave()
    leaving.leave()
    #expect(other.lines.count == 1 && !leaving.hasEnded)
  }

  @Test("A request to end that comes while the daemon leaves stops its workers")
  func endWhileLeaving() {
    world.add("web", .resuming)
    end.leave()
    end.end()
    #expect(world.asked == ["stop web"] && !end.hasEnded)
    world.set("web") { $0.state = .background }
    end.engineIsQuiet()
    #expect(!end.hasEnded, "it is quiet, but web is to end")
    hasStopped("web")
    #expect(end.hasEnded && world.calls.contains("close listeners"))
  }
}
