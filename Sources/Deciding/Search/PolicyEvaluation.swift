import Lifecycle
import Policy
import Simulation

/// What a policy holds and costs over a history. Counts and sums are for 24 hours.
public struct PolicyNumbers: Codable, Hashable, Sendable {
  /// The average of what all workers hold together, in bytes.
  public var averageFootprint: Int64
  /// What hibernation and trims save, in byte-hours for each day.
  public var savedByteHours: Double
  /// The trims for each day.
  public var trims: Double
  /// The wakes for each day.
  public var wakes: Double
  /// The time that all uses together wait for resumes, launches and trimmed memory, in seconds for
  /// each day.
  public var waitSeconds: Double
  /// The median of how long uses wait that don't find a running worker, in seconds.
  public var waitP50: Double
  /// The 95th percentile of how long uses wait that don't find a running worker, in seconds.
  public var waitP95: Double
  /// The bytes written to images for each day.
  public var writtenBytes: Int64
  /// The terminations for lack of memory, and the uses that were lost by one.
  public var ended: Double
}

/// A policy's numbers, those of each worker too.
struct PolicyEvaluation {
  var change: PolicyChange
  var numbers: PolicyNumbers
  var accounts: [WorkerID: FleetAccount]
  var report: FleetReport
  var days: Double

  init(_ simulation: inout FleetSimulation, _ change: PolicyChange, length: Int64) {
    self.change = change
    report = simulation.run()
    accounts = simulation.accounts
    days = Double(length) / 86_400_000
    let all = accounts.values
    let ended = report.terminated.values.reduce(0, +) + report.outOfMemory + report.lostUses
    // Sums of many small numbers depend on their order.
    let sums = accounts.sorted { $0.key < $1.key }.map(\.value)
    numbers = PolicyNumbers(
      averageFootprint: Int64(sums.reduce(0) { $0 + $1.byteSeconds } / days / 86_400),
      savedByteHours: sums.reduce(0) { $0 + $1.savedByteSeconds + $1.trimmedByteSeconds } / days
        / 3600,
      trims: Double(report.trims) / days,
      wakes: Double(all.reduce(0) { $0 + $1.wakes }) / days,
      waitSeconds: sums.reduce(0) { $0 + $1.waitSeconds } / days,
      waitP50: report.wake.p50 / 1000, waitP95: report.wake.p95 / 1000,
      writtenBytes: Int64(Double(all.reduce(0) { $0 + $1.writtenBytes }) / days),
      ended: Double(ended) / days)
  }

  /// The byte-hours a day, waiting included: the less, the better.
  ///
  /// - Parameter worth: the byte-hours that a second of waiting is worth.
  func cost(_ worth: Double) -> Double {
    Double(numbers.averageFootprint) * 24 + numbers.waitSeconds * worth
  }
}

extension PolicyEvaluation {
  /// Whether this policy is at least as good in memory and waiting, and better in one of them.
  func dominates(_ other: PolicyEvaluation) -> Bool {
    let (mine, theirs) = (numbers, other.numbers)
    return mine.averageFootprint <= theirs.averageFootprint
      && mine.waitSeconds <= theirs.waitSeconds
      && (mine.averageFootprint < theirs.averageFootprint || mine.waitSeconds < theirs.waitSeconds)
  }

  /// The three workers for which most changes.
  func differences(
    to now: PolicyEvaluation, _ worth: Double
  ) -> [PolicySuggestions.WorkerDifference] {
    let all = accounts.map { worker, account in
      let before = now.accounts[worker] ?? FleetAccount()
      return PolicySuggestions.WorkerDifference(
        worker: worker.name,
        byteHours: (account.byteSeconds - before.byteSeconds) / 3600 / days,
        wakes: Double(account.wakes - before.wakes) / days,
        waitSeconds: (account.waitSeconds - before.waitSeconds) / days)
    }
    let sorted = all.sorted {
      ($1.weight(worth), $0.worker) < ($0.weight(worth), $1.worker)
    }
    return Array(sorted.filter { $0.weight(worth) >= 1_048_576 }.prefix(3))
  }
}

extension PolicySuggestions.WorkerDifference {
  fileprivate func weight(_ worth: Double) -> Double {
    (byteHours + waitSeconds * worth).magnitude
  }
}
