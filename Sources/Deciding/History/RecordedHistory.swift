import Journal
import Lifecycle
import Policy
import Simulation

/// What a journal says about the workers: their uses and footprints over time, as a trace that a
/// simulation plays under any policy.
public struct RecordedHistory: Sendable {
  /// The wall clock at the first record. `nil`: the journal has no record in the time.
  public var from: WallTime?
  /// The wall clock at the last record. `nil`: the journal has no record in the time.
  public var to: WallTime?
  /// The workers' uses and footprints. Its time begins at the first record, without gaps.
  public var trace = Trace(name: "own history", length: 0, workers: [], uses: [])
  /// The policy in effect at the end.
  public var policy = LifecyclePolicy()
  /// The workers' last profiles. The policy in each has the worker's own keys applied.
  public var profiles: [WorkerID: WorkerProfile] = [:]
  /// What operations cost in the journal.
  public var costs = MeasuredCosts()
  /// The machine's memory. `nil`: the journal has no memory reading.
  public var memory: ByteCount?
  /// How often the daemon didn't run, or the journal has a gap. That time is left out.
  public var gaps = 0
  public var recorded = Totals()
  /// The names of workers whose uses weren't recorded while they were awake, because their traffic
  /// isn't observed.
  public var unobserved: [String] = []
  /// The parts of the journal that couldn't be read.
  public var problems: [JournalProblem] = []

  /// What happened, for a comparison with a simulation.
  public struct Totals: Sendable, Hashable {
    /// What all workers held, added up over time.
    public var byteSeconds = 0.0
    /// What hibernation and trims saved, added up over time.
    public var savedByteSeconds = 0.0
    public var wakes = 0
    public var trims = 0
  }

  /// The length of the history, without gaps.
  public var length: Duration { .milliseconds(trace.length) }

  /// A model of the machine, with its memory and the costs that were measured.
  public func machine() -> MachineModel {
    let half = ByteCount(trace.footprint.bytes / 2)
    return costs.applied(to: MachineModel(memory: memory ?? max(.megabytes(64), half)))
  }

  /// The workers' profiles under another policy. Their own keys override it.
  public func profiles(under other: LifecyclePolicy) throws -> [WorkerID: WorkerProfile] {
    let overlay = try PolicyOverlay(other)
    return profiles.mapValues { profile in
      var profile = profile
      profile.policy = overlay.policy(of: profile, over: policy)
      return profile
    }
  }

  /// A description for the result of a simulation of the history.
  public func description(_ machine: MachineModel) -> FleetHistory {
    let seconds = max(length / .seconds(1), 1)
    return FleetHistory(
      from: from?.text ?? "", to: to?.text ?? "", gaps: gaps,
      measured: costs.measured(machine), unobserved: unobserved,
      averageFootprint: Int64(recorded.byteSeconds / seconds),
      averageSaved: Int64(recorded.savedByteSeconds / seconds), wakes: recorded.wakes,
      trims: recorded.trims)
  }
}

/// Why a history can't be used.
public enum HistoryProblem: Error, Hashable, Sendable, CustomStringConvertible {
  case empty
  case unused
  case short(Duration, needed: Duration)

  public var description: String {
    switch self {
    case .empty: "the journal has no records in that time"
    case .unused: "the journal has no use of a worker in that time: nothing can be compared"
    case .short(let length, let needed):
      "the history is too short: \(length.text) of at least \(needed.text)"
    }
  }
}

extension RecordedHistory {
  /// Throws if the history can't be used for a comparison.
  ///
  /// - Parameter least: the length that it must have.
  public func check(minLength: Duration) throws(HistoryProblem) {
    if from == nil { throw .empty }
    if length < minLength { throw .short(length, needed: minLength) }
    if trace.useCount == 0 { throw .unused }
  }
}
