import Lifecycle
import Policy
import PolicyFile
import Simulation

/// Tries changes of a policy over a recorded history, in a simulation of it.
///
/// `replay --policy` would be another way. It plays each memory reading of the journal again for
/// each policy, which takes most of a minute for a week, so that only a few policies could be
/// tried. And its model has no waiting times of uses.
public struct PolicySearch {
  private let history: RecordedHistory
  private let base: LifecyclePolicy
  private let machine: MachineModel
  /// The workers whose policy is changed. `nil`: all.
  private let chosen: Set<WorkerID>?
  /// Other policies to compare with, for all workers.
  private let others: [LifecyclePolicy]
  private let worth: Double
  /// The largest number of events that may be simulated. `nil`: any.
  private let budget: Int?
  private var progress: (Double) -> Void = { _ in }
  private var tried = 0

  /// The default value of a second of waiting: 100 MB for an hour.
  public static let defaultWorth = 100.0 * 1_048_576
  /// The default number of events to simulate, which takes some 40 s.
  public static let defaultBudget = 12_000_000
  /// The least gain that is worth a change, as a share of the present cost.
  private static let minShare = 0.03
  /// The least gain that is worth a change, in byte-hours a day.
  private static let minByteHours = 24.0 * 1_048_576
  private static let maxFinalists = 6

  /// A search over a history.
  ///
  /// - Parameters:
  ///   - base: the policy that is changed; `nil`: the recorded one.
  ///   - chosen: the workers whose policy is changed; `nil`: all.
  ///   - others: policies that are compared as they are, if the change is for all workers.
  ///   - worth: the byte-hours that a second of waiting is worth.
  ///   - budget: the largest number of events that may be simulated; `nil`: any.
  public init(
    _ history: RecordedHistory, base: LifecyclePolicy? = nil, only chosen: Set<WorkerID>? = nil,
    others: [LifecyclePolicy] = [], worth: Double = defaultWorth, budget: Int? = defaultBudget
  ) {
    self.history = history
    self.base = base ?? history.policy
    self.chosen = chosen
    let name = self.base.name
    self.others = chosen == nil ? others.filter { $0.name != name } : []
    self.worth = worth
    self.budget = budget
    machine = history.machine()
  }

  /// Runs the search.
  ///
  /// - Parameter progress: called with the share that is done, 0–1.
  public mutating func run(progress: @escaping (Double) -> Void = { _ in }) throws
    -> PolicySuggestions
  {
    self.progress = progress
    let trace = history.trace
    let whole = try evaluate(PolicyChange([]), trace)
    let singles = try candidates(whole)
    // Half of the budget is for finding the best changes, the other half for measuring them.
    let screening = suffix(of: trace, whole, runs: singles.count + 1)
    let before = screening == trace ? whole : try evaluate(PolicyChange([]), screening)
    let screened = try ranked(singles, over: screening, before, from: 0, to: 0.5)
    let finalists = self.finalists(screened, before)
    let final = suffix(of: trace, whole, runs: finalists.count + others.count + 1)
    let now = final == trace ? whole : try evaluate(PolicyChange([]), final)
    let results =
      final == screening
      ? screened.filter { finalists.contains($0.change) }
        + (try ranked(finalists.filter { $0.keys.count > 1 }, over: final, now, from: 0.5, to: 1))
      : try ranked(finalists, over: final, now, from: 0.5, to: 1)
    var answer = try suggestions(selected(results, now), now: now, over: final)
    if !others.isEmpty {
      answer.policies = try others.map { try weighed($0, over: final, against: now) }
    }
    return answer
  }

  /// Compares another policy with the present one, with this machine's memory: the policy's budget
  /// stands for the device of its time.
  private func weighed(
    _ other: LifecyclePolicy, over trace: Trace, against now: PolicyEvaluation
  ) throws -> PolicySuggestions.OtherPolicy {
    var policy = other
    policy.memory = base.memory
    policy.mode = base.mode
    var simulation = FleetSimulation(
      trace: trace, machine: machine, policy: policy,
      profiles: try history.profiles(under: policy))
    let result = PolicyEvaluation(&simulation, PolicyChange([]), length: trace.length)
    return PolicySuggestions.OtherPolicy(
      name: other.name, numbers: result.numbers,
      isBetter: gain(result, now) >= minGain(now)
        && result.numbers.ended <= now.numbers.ended,
      gain: gain(result, now), yaml: "policy: \(other.name)")
  }

  /// The least gain that is clearly better.
  private func minGain(_ now: PolicyEvaluation) -> Double {
    max(Self.minByteHours, now.cost(worth) * Self.minShare)
  }

  // MARK: what is tried

  private func candidates(_ now: PolicyEvaluation) throws -> [PolicyChange] {
    let profiles = try history.profiles(under: base)
    let workers = history.trace.workers.filter { chosen?.contains(WorkerID($0.name)) ?? true }
    let changes = CandidateChanges(
      policy: try ofFirstChosen(profiles) ?? base,
      profiles: workers.map {
        CandidateChanges.WorkerPolicyAndSize(
          policy: profiles[WorkerID($0.name)]?.policy ?? base, footprint: $0.footprint,
          launch: $0.launch, resume: machine.resume($0.footprint.bytes))
      },
      refusedByDisk: now.report.hibernationsRefused > 0,
      endedForMemory: now.report.outOfMemory + now.report.terminated.values.reduce(0, +) > 0,
      hasTrims: history.recorded.trims > 0)
    return changes.all.filter { $0.isPossible(in: base, ofOneWorker: chosen != nil) }
  }

  /// The policy of the first of the chosen workers. `nil`: all workers are chosen.
  private func ofFirstChosen(
    _ profiles: [WorkerID: WorkerProfile]
  ) throws -> LifecyclePolicy? {
    chosen.flatMap { $0.sorted().first }.flatMap { profiles[$0]?.policy }
  }

  /// The best changes, at most two for each key, and pairs of the best ones for different keys.
  private func finalists(
    _ screened: [PolicyEvaluation], _ now: PolicyEvaluation
  ) -> [PolicyChange] {
    let better = screened.filter { gain($0, now) > 0 && $0.numbers.ended <= now.numbers.ended }
    var counts: [String: Int] = [:]
    var best: [PolicyChange] = []
    for one in better {
      let key = one.change.keys.joined()
      counts[key, default: 0] += 1
      if counts[key, default: 0] <= 2 { best.append(one.change) }
    }
    let saves = better.min { $0.numbers.averageFootprint < $1.numbers.averageFootprint }
    let waits = better.min { $0.numbers.waitSeconds < $1.numbers.waitSeconds }
    var result = Array(best.prefix(Self.maxFinalists))
    for extra in [saves, waits].compactMap({ $0?.change }) where !result.contains(extra) {
      result.append(extra)
    }
    var heads: [PolicyChange] = []
    for change in best where !heads.contains(where: { $0.keys == change.keys }) {
      heads.append(change)
    }
    heads = Array(heads.prefix(3))
    for (index, first) in heads.enumerated() {
      for second in heads.dropFirst(index + 1) {
        result.append(PolicyChange(first.settings + second.settings))
      }
    }
    return result
  }

  /// The end of the history for which `runs` simulations fit into half of the budget.
  private func suffix(of trace: Trace, _ whole: PolicyEvaluation, runs: Int) -> Trace {
    guard let budget else { return trace }
    let wanted = Double(whole.report.events) * Double(runs)
    let share = Double(budget) / 2 / max(wanted, 1)
    guard share < 1 else { return trace }
    // Whole hours: a day has busy and idle ones.
    let hours = max(1, Int64(Double(trace.length) * share) / 3_600_000)
    return trace.suffix(hours * 3_600_000)
  }

  // MARK: the numbers

  private mutating func evaluate(
    _ change: PolicyChange, _ trace: Trace
  ) throws -> PolicyEvaluation {
    var policy = base
    var profiles = try history.profiles(under: base)
    if let chosen {
      for worker in chosen {
        guard let workerPolicy = profiles[worker]?.policy else { continue }
        profiles[worker]?.policy = try change.applied(to: workerPolicy)
      }
    } else {
      policy = try change.applied(to: base)
      profiles = try history.profiles(under: policy)
    }
    var simulation = FleetSimulation(
      trace: trace, machine: machine, policy: policy, profiles: profiles)
    return PolicyEvaluation(&simulation, change, length: trace.length)
  }

  /// The evaluations of changes, the best first. Equal ones are in the order in which they were
  /// tried.
  private mutating func ranked(
    _ changes: [PolicyChange], over trace: Trace, _ now: PolicyEvaluation, from: Double,
    to: Double
  ) throws -> [PolicyEvaluation] {
    var results: [PolicyEvaluation] = []
    for (index, change) in changes.enumerated() {
      progress(from + (to - from) * Double(index) / Double(changes.count))
      tried += 1
      // An error means that a change contradicts a worker's own keys, and can't be made.
      if let result = try? evaluate(change, trace) { results.append(result) }
    }
    return results.enumerated().sorted {
      (gain($1.element, now), $0.offset) < (gain($0.element, now), $1.offset)
    }.map(\.element)
  }

  private func gain(_ one: PolicyEvaluation, _ now: PolicyEvaluation) -> Double {
    now.cost(worth) - one.cost(worth)
  }

  // MARK: the choice

  private func selected(
    _ results: [PolicyEvaluation], _ now: PolicyEvaluation
  ) -> [(code: String, result: PolicyEvaluation)] {
    let threshold = minGain(now)
    var better = results.filter {
      gain($0, now) >= threshold && $0.numbers.ended <= now.numbers.ended
    }
    let single = better.filter { $0.change.settings.count == 1 }.map { gain($0, now) }.max() ?? 0
    // Two changes must be clearly better than one.
    better.removeAll { $0.change.settings.count > 1 && gain($0, now) < single * 1.1 }
    better.sort { gain($1, now) < gain($0, now) }
    let front = better.filter { one in
      !better.contains { $0.dominates(one) }
    }
    // Among changes that gain about as much, the one with the least waiting is best.
    let maxGain = front.map { gain($0, now) }.max() ?? 0
    let best = front.filter { gain($0, now) >= maxGain * 0.97 }
      .min { $0.numbers.waitSeconds < $1.numbers.waitSeconds }
    guard let best else { return [] }
    var chosen = [("best", best)]
    let saves = front.min { $0.numbers.averageFootprint < $1.numbers.averageFootprint }
    let waits = front.min { $0.numbers.waitSeconds < $1.numbers.waitSeconds }
    let step = now.numbers.averageFootprint / 20
    if let saves, saves.numbers.averageFootprint < best.numbers.averageFootprint - step {
      chosen.append(("saves_most", saves))
    }
    if let waits, waits.numbers.waitSeconds < best.numbers.waitSeconds * 0.9 {
      chosen.append(("waits_least", waits))
    }
    return chosen
  }

  private func suggestions(
    _ chosen: [(code: String, result: PolicyEvaluation)], now: PolicyEvaluation,
    over trace: Trace
  ) throws -> PolicySuggestions {
    let none = "no change of those tried would have been clearly better"
    return PolicySuggestions(
      code: chosen.isEmpty ? "no_change" : "changes",
      text: chosen.isEmpty ? none : "clearly better by these numbers: \(chosen.count)",
      policy: base.name, only: self.chosen.map { $0.map(\.name).sorted() },
      history: history.description(machine), hours: Double(history.trace.length) / 3_600_000,
      evaluatedHours: Double(trace.length) / 3_600_000, workers: trace.workers.count,
      uses: trace.useCount, tried: tried, waitWorth: worth, now: now.numbers,
      suggestions: try chosen.map { try suggestion($0.result, code: $0.code, now: now) })
  }

  private func suggestion(
    _ result: PolicyEvaluation, code: String, now: PolicyEvaluation
  ) throws -> PolicySuggestions.Suggestion {
    let before = try ofFirstChosen(history.profiles(under: base)) ?? base
    let differences = try PolicyFile.differences(
      from: before, to: result.change.applied(to: before))
    return PolicySuggestions.Suggestion(
      code: code,
      changes: differences.map {
        PolicySuggestions.Change(
          key: $0.key, from: $0.left, to: $0.right, text: $0.meaning)
      },
      yaml: chosen.map { $0.sorted().map { result.change.yaml(worker: $0.name) } }
        ?? [result.change.yaml()],
      set: result.change.settings.map(\.argument), numbers: result.numbers,
      workers: result.differences(to: now, worth))
  }
}
