import Glibc
import Lifecycle
import Linux
import Supervision

@testable import Daemon

/// The runs that an earlier simulated daemon has left, and the real `SurvivorAdoption`.
final class ShellSurvivors {
  private unowned let world: ShellWorld
  /// The runs that haven't been taken over yet.
  private(set) var remains: [WorkerID: ShellRun]
  /// The records that the daemon read at its start.
  private let records: [String: WorkerRecord]
  /// Workers that can't be taken over. They stay as they are.
  private var given: Set<WorkerID> = []

  init(_ world: ShellWorld, _ remains: [ShellRun], _ records: [String: WorkerRecord]) {
    self.world = world
    self.records = records
    self.remains = Dictionary(
      remains.map { ($0.id, ShellRun($0, after: world)) }, uniquingKeysWith: { first, _ in first })
  }

  func adopt() {
    let ended = records.values.filter {
      find($0.name, $0.process).map { $0.body == .dead } ?? true
    }.map(\.name)
    world.processes.fake.set { $0.ended = Set(ended) }
    adoption.adoptSurvivors()
  }

  private lazy var adoption = SurvivorAdoption(
    timers: world.clock, recordWriter: world.recordWriter, processes: world.processes.fake,
    configuration: world.reloads.configuration, declared: world.declared,
    conversations: world.conversations, ends: world.ends, holder: world.runs.holder)

  /// Whether a process of the worker still runs, as `Leftovers` and the launch's obstacle would
  /// find it.
  func holds(_ id: WorkerID) -> Bool { remains[id].map { $0.body != .dead } ?? false }

  /// Whether processes remain that can't be taken over or have no record. They stay as they are.
  var hasRemains: Bool { remains.values.contains { $0.body != .dead } }

  /// A run that should have been taken over; nil: none.
  var omission: String? {
    remains.values.first {
      $0.body != .dead && records[$0.id.name]?.process.pid == $0.number && !given.contains($0.id)
    }.map { "\($0.id), which an earlier daemon has left, isn't adopted (\($0.body.rawValue))" }
  }

  // MARK: state of the kernel

  private func find(_ name: String, _ process: ProcessIdentity) -> ShellRun? {
    let run = remains[WorkerID(name)]
    return run?.number == process.pid ? run : nil
  }

  /// Removes the run from the remains: it belongs to the current daemon from now on.
  func claim(_ name: String, _ process: ProcessIdentity) throws(SystemCallError) -> ShellRun {
    guard let run = find(name, process) else {
      throw SystemCallError("pidfd_open", on: name, code: ESRCH)
    }
    if world.chance(3) {
      given.insert(run.id)
      throw SystemCallError("pidfd_open", on: name, code: EMFILE)
    }
    remains[run.id] = nil
    world.count("taken over")
    return run
  }

  func forget(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    if find(record.name, record.process) != nil { remains[id] = nil }
    world.images.remove(id)
    world.count("forgotten")
  }

  func state(_ run: ShellRun, by record: WorkerRecord) -> SurvivorState {
    let hasImage = world.images.contains(run.id)
    switch record.state {
    case WorkerState.hibernated.rawValue:
      guard run.body == .evicted, hasImage else { return hasImage ? .inDoubt : .withoutImage("/") }
      return leaveAsleep(.hibernated, ImageOnDisk(path: "/\(run.id)"))
    case WorkerState.suspended.rawValue:
      guard run.body == .stopped, world.hasFreezer else { return .inDoubt }
      if run.isImageNeeded, let missing = run.missing {
        world.count("left trimmed")
        return .trimmed(missing)
      }
      return hasImage ? .inDoubt : leaveAsleep(.suspended, nil)
    default: return .inDoubt
    }
  }

  private func leaveAsleep(_ state: WorkerState, _ image: ImageOnDisk?) -> SurvivorState {
    world.count("left asleep")
    return .asleep(state, image)
  }
}
