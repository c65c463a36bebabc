import Control
import Daemon
import JSONLines
import Journal
import Lifecycle
import Policy

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

  private static func text(_ tree: JSON) -> String { String(decoding: tree.line, as: UTF8.self) }
}

extension PolicyComparison {
  init(_ other: WhatIf, wallOffset: Int64) {
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
      policy: other.policy.name, workers: pairs, relaunches: other.relaunches,
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

  /// The averages are added: the sum is what all workers held at a time.
  init(together ledger: Ledger) {
    self.init(ledger.tallies.values.reduce(WorkerTally(), +))
    averageFootprint = ledger.tallies.values.reduce(0) { $0 + $1.averageFootprint }
  }
}
