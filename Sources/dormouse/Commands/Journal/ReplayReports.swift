import Control
import JSONLines
import Journal
import Lifecycle

// Converts the engine's values to those that are printed.

extension ReplayReport {
  init(_ check: DeterminismCheck, _ problems: [JournalProblem]) {
    self.init()
    segments = check.segments
    daemons = check.runs
    events = check.events
    directives = check.directives
    from = check.from?.text
    to = check.to?.text
    differingEvents = check.differingEvents
    differences = check.differences.map { difference in
      Difference(
        time: difference.wall.text, event: "\(difference.event)",
        recorded: difference.recorded.map(Self.text), replayed: difference.replayed.map(Self.text))
    }
    self.problems = problems.map(\.description)
  }

  typealias Compared = (label: String, world: WhatIf, wallOffset: Int64)

  mutating func add(_ compared: [Compared]) {
    let all = compared.map {
      PolicyComparison($0.world, label: $0.label, wallOffset: $0.wallOffset)
    }
    if all.count == 1 { comparison = all.first } else { comparisons = all }
    let recorded = compared.first.map { [PolicyTotals(recordedBy: $0.world)] } ?? []
    totals = recorded + compared.map { PolicyTotals($0.world, label: $0.label) }
  }

  private static func text(_ tree: JSON) -> String { String(decoding: tree.line, as: UTF8.self) }
}

extension PolicyComparison {
  /// - Parameter label: The policy's name in the report.
  init(_ other: WhatIf, label: String, wallOffset: Int64) {
    let names = Set(other.recorded.tallies.keys).union(other.other.tallies.keys).sorted()
    var pairs = names.map { name in
      Pair(
        worker: name.name, recorded: Counts(other.recorded.tallies[name] ?? WorkerTally()),
        other: Counts(other.other.tallies[name] ?? WorkerTally()))
    }
    if pairs.count > 1 {
      pairs.append(
        Pair(
          worker: nil, recorded: Counts(together: other.recorded),
          other: Counts(together: other.other)))
    }
    self.init(
      policy: label, workers: pairs, relaunches: other.relaunches,
      relaunchSeconds: other.relaunchTime / .seconds(1), differingChanges: other.divergence.count,
      firstChanges: other.divergence.changes.map { change in
        let transition = change.transition
        let wall = WallTime(nanoseconds: transition.at.nanoseconds &+ wallOffset)
        return Change(
          time: wall.text, worker: transition.worker.name, from: transition.from.rawValue,
          to: transition.to.rawValue,
          why: CodedText(transition.cause.code, transition.cause.sentence),
          isRecorded: change.isRecorded)
      })
  }
}

extension PolicyComparison.Counts {
  init(_ tally: WorkerTally) {
    self.init()
    terminations = tally.memoryTerminations + tally.watchdogTerminations
    hibernations = tally.hibernations
    suspensions = tally.suspensions
    warnings = tally.warnings
    launches = tally.launches
    wakes = tally.wakes
    resumes = tally.resumes
    resumeSeconds = Double(tally.resumeNanoseconds) / 1e9
    freed = tally.freed
    averageFootprint = tally.averageFootprint
    seconds = tally.nanoseconds.mapValues { Double($0) / 1e9 }
  }

  /// The counts of all workers together. The averages are added: the sum is the memory that all
  /// workers held at a time.
  init(together ledger: Ledger) {
    self.init(ledger.tallies.values.reduce(WorkerTally(), +))
    averageFootprint = ledger.tallies.values.reduce(0) { $0 + $1.averageFootprint }
  }
}

extension PolicyTotals {
  /// The totals of the recorded history.
  init(recordedBy other: WhatIf) {
    self.init(policy: nil, other.recorded)
    relaunches = other.recordedRelaunches
    waitSeconds += other.recordedRelaunchTime / .seconds(1)
  }

  /// The totals of the history under the other policy.
  init(_ other: WhatIf, label: String) {
    self.init(policy: label, other.other)
    relaunches = other.relaunches
    waitSeconds += other.relaunchTime / .seconds(1)
    differingChanges = other.divergence.count
  }

  private init(policy: String?, _ ledger: Ledger) {
    self.init(policy: policy)
    let all = ledger.tallies.values.reduce(WorkerTally(), +)
    // A worker without processes holds nothing, so the average is over the whole time.
    let span = max(ledger.span / .seconds(1), 1e-9)
    averageFootprint = Int64(all.byteSeconds / span)
    averageSaved = Int64(all.savedByteSeconds / span)
    suspensions = all.suspensions
    hibernations = all.hibernations
    wakes = all.wakes + all.resumes
    waitSeconds = Double(all.resumeNanoseconds) / 1e9
    terminations = all.memoryTerminations + all.watchdogTerminations
    warnings = all.warnings
  }
}
