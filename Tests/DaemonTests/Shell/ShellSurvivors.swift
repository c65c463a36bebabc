import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

@testable import Daemon

/// The host of the real `SurvivorAdoption`: what an earlier simulated daemon has left.
final class ShellSurvivors: SurvivorHost {
  private unowned let world: ShellWorld
  /// What lives of it, until it is taken over.
  private(set) var remains: [WorkerID: ShellRun]
  /// Was found when the daemon started.
  private let records: [String: WorkerRecord]
  /// That can't be taken over: they stay as they are.
  private(set) var given: Set<WorkerID> = []

  init(_ world: ShellWorld, _ remains: [ShellRun], _ records: [String: WorkerRecord]) {
    self.world = world
    self.records = records
    self.remains = Dictionary(
      remains.map { ($0.id, ShellRun($0, after: world)) }, uniquingKeysWith: { first, _ in first })
  }

  /// As `Leftovers` and the launch's obstacle find it.
  func holds(_ id: WorkerID) -> Bool { remains[id].map { $0.body != .dead } ?? false }

  /// Some can't be taken over, or have no record: they stay as they are.
  var hasRemains: Bool { remains.values.contains { $0.body != .dead } }

  /// What should have been taken over; nil: nothing.
  var omission: String? {
    remains.values.first {
      $0.body != .dead && records[$0.id.name]?.process.pid == $0.number && !given.contains($0.id)
    }.map { "\($0.id), which an earlier daemon has left, isn't adopted (\($0.body.rawValue))" }
  }

  // MARK: the adoption's host

  var forbidsStrangers: Bool { false }

  func loadRecords() throws(WorkerRecordError) -> (
    records: [WorkerRecord], failures: [WorkerRecordError]
  ) { (records.values.sorted { $0.name < $1.name }, []) }

  private func find(_ record: WorkerRecord) -> ShellRun? {
    let run = remains[WorkerID(record.name)]
    return run?.number == record.process.pid ? run : nil
  }

  func life(of record: WorkerRecord) -> ProcessLife {
    find(record).map { $0.body != .dead } == true ? .lives : .hasEnded
  }

  func forget(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    if find(record) != nil { remains[id] = nil }
    world.images.remove(id)
    world.saved.remove(record.name)
    world.count("forgotten")
  }

  func removeOrphans() {
    for id in world.images where world.saved.known[id.name] == nil { world.images.remove(id) }
  }

  func takeOver(_ record: WorkerRecord) throws {
    let id = WorkerID(record.name)
    guard let run = find(record) else { throw AdoptionRefusal.refused("it has ended") }
    if world.chance(3) {
      given.insert(id)
      throw AdoptionRefusal.refused("its cgroup can't be opened")
    }
    remains[id] = nil
    let runtime =
      world.workers[id]
      ?? WorkerUnit(
        configuration: .init(
          name: id.name, command: [id.name], importance: record.importance,
          policy: world.driver.state.policy), environment: [:], isDeclared: false)
    if world.workers[id] == nil { world.supervision.restarts.add(id, exits: []) }
    world.workers[id] = runtime
    runtime.external = record.external.map {
      ExternalWorker(mayBeTerminated: $0 == .mayBeTerminated, rule: record.rule)
    }
    world.count("taken over")
    try world.runs.attach(run, to: runtime)
    runtime.noteLaunch()
  }

  func rest(of record: WorkerRecord) -> SurvivorRest {
    let id = WorkerID(record.name)
    guard let run = world.run(of: id) else { return .inDoubt }
    let hasImage = world.images.contains(id)
    switch record.state {
    case WorkerState.hibernated.rawValue:
      guard run.body == .evicted, hasImage else { return hasImage ? .inDoubt : .withoutImage("/") }
      return .asleep(.hibernated, ImageOnDisk(path: "/\(id)"))
    case WorkerState.suspended.rawValue:
      return run.body == .stopped && !hasImage && world.hasFreezer
        ? .asleep(.suspended, nil) : .inDoubt
    default: return .inDoubt
    }
  }

  func leaveAsleep(_ record: WorkerRecord, with image: ImageOnDisk?) {
    world.count("left asleep")
    world.workers[WorkerID(record.name)]?.sleep?.adopt(asleepWith: image)
  }

  func staysAsleep(_ id: WorkerID, with image: ImageOnDisk?) {
    world.count("can't be woken yet")
    world.workers[id]?.sleep?.adopt(asleepWith: image)
  }

  func watchInputs(of record: WorkerRecord, then: @escaping (SurvivorWatch?) -> Void) {
    let id = WorkerID(record.name)
    guard let runtime = world.workers[id], let run = world.run(of: id) else { return isGone(then) }
    perform(runtime) { [world] done in
      world.after(.milliseconds(100), rarely: .seconds(90)) { done(()) }
    } then: { [world] (found: Void?) in
      guard found != nil, world.workers[id] === runtime, runtime.process != nil else {
        return then(nil)
      }
      runtime.wakeWatch?.listen(at: .success(run.makeInputs()))
      if let alarm = record.alarm {
        runtime.wakeWatch?.timer.set(at: Instant(nanoseconds: alarm), "its own timer")
      }
      then(SurvivorWatch())
    }
  }

  func recover(_ record: WorkerRecord, then: @escaping (SurvivorRecovery?) -> Void) {
    let id = WorkerID(record.name)
    guard let runtime = world.workers[id], world.hasRun(id) else { return isGone(then) }
    let expecting: ImageExpectation = .of(record)
    perform(runtime) { [world] done in
      world.memory.recover(id.name, expecting: expecting, isReported: true, then: done)
    } then: { (found: Recovered?) in
      then(
        found.map {
          SurvivorRecovery(result: $0.result.map { _ in ByteCount.zero }, image: $0.image)
        })
    }
  }

  private func perform<Outcome>(
    _ runtime: WorkerUnit, _ operation: (_ done: @escaping (Outcome) -> Void) -> Void,
    then: @escaping (Outcome?) -> Void
  ) {
    guard let sleep = runtime.sleep else { return isGone(then) }
    var isTaken = false
    sleep.perform { (back: @escaping (Outcome) -> Void) in
      operation { outcome in
        back(outcome)
        if !isTaken { then(nil) }
      }
    } then: { outcome in
      isTaken = true
      then(outcome)
    }
  }

  private func isGone<Outcome>(_ then: @escaping (Outcome?) -> Void) {
    world.clock.after(.zero) { then(nil) }
  }

  func killUnverified(_ id: WorkerID) { world.workers[id]?.sleep?.killUnverified() }

  func save(_ id: WorkerID, _ state: WorkerState) {
    if let runtime = world.workers[id] { world.recordWriter.save(runtime, state: state) }
  }

  func isBack(_ id: WorkerID) {}

  func wakeForWhatWaits(_ id: WorkerID) { world.workers[id]?.wakeWatch?.wakeForWhatWaits() }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
