import Lifecycle
import Policy
import Simulation

/// The search for the worst decisions: simulated hours of a whole machine, under each kind of
/// trace, each shipped policy, and limits that are used up. A second engine handles the same
/// events, and each of its decisions is timed.
struct WorstSearch {
  let workers: Int
  let hours: Int64

  private struct Case {
    var name: String
    var policy: LifecyclePolicy
    /// The budget, as a share of what all workers would hold.
    var memoryShare: Double
  }

  private final class Timing {
    var engine: Engine
    var times = Times()
    /// By kind of event: how many, and the slowest with what it decided.
    var kinds: [String: (count: Int, total: UInt64, worst: UInt64, decided: String)] = [:]

    init(_ policy: LifecyclePolicy) { engine = Engine(policy: policy) }

    func handle(_ event: Event, at now: Instant) {
      let start = Clock.nanoseconds
      let directives = engine.handle(event, at: now)
      _ = engine.nextDeadline
      let time = Clock.nanoseconds - start
      times.add(time)
      var kind = kinds[Self.kind(event)] ?? (0, 0, 0, "")
      kind.count += 1
      kind.total += time
      if time > kind.worst {
        let names = Set(directives.map(Self.kind)).sorted().joined(separator: ", ")
        (kind.worst, kind.decided) = (time, "\(directives.count) directives: \(names)")
      }
      kinds[Self.kind(event)] = kind
    }

    private static func kind(_ value: some Any) -> String {
      String("\(value)".prefix { $0 != "(" && $0 != "\n" })
    }
  }

  func run(_ policies: [LifecyclePolicy]) {
    print(
      "| work | workers | decisions | a second | mean µs | median | p99 | p99.9 "
        + "| slowest µs, and what it decided |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for pattern in TraceGenerator.Pattern.allCases {
      let trace = TraceGenerator(
        pattern: pattern, workers: workers, length: hours * 3_600_000, seed: 7
      ).trace()
      for one in cases(policies) { measure(one, trace, pattern) }
    }
  }

  private func cases(_ policies: [LifecyclePolicy]) -> [Case] {
    policies.flatMap { policy in
      var exhausted = policy
      exhausted.hibernate.disk.budget = .megabytes(1)
      exhausted.hibernate.disk.dailyWrites = .megabytes(1)
      return [
        Case(name: "\(policy.name), half of the memory", policy: policy, memoryShare: 0.5),
        Case(
          name: "\(policy.name), a tenth, no room for images", policy: exhausted, memoryShare: 0.1),
      ]
    }
  }

  private func measure(_ one: Case, _ trace: Trace, _ pattern: TraceGenerator.Pattern) {
    let whole = trace.workers.reduce(Int64(0)) { $0 + $1.footprint.bytes }
    let machine = MachineModel(memory: ByteCount(Int64(Double(whole) * one.memoryShare)))
    var simulation = FleetSimulation(trace: trace, machine: machine, policy: one.policy)
    let timing = Timing(one.policy)
    simulation.observer = { event, _, _, now in timing.handle(event, at: now) }
    _ = simulation.run()
    let worst = timing.kinds.max { $0.value.worst < $1.value.worst }
    let text = worst.map { kind, value in
      "\(fixed(Double(value.worst) / 1000, 1)): `\(kind)`, \(value.decided)"
    }
    let row = timing.times.summary("\(pattern.rawValue), \(one.name)", workers, mallocs: nil)
    print(row.replacing("| – |", with: "| \(text ?? "–") |"))
    for (kind, value) in timing.kinds.sorted(by: { $0.value.total > $1.value.total }).prefix(3) {
      let mean = Double(value.total) / Double(value.count) / 1000
      let slowest = fixed(Double(value.worst) / 1000, 1)
      print(
        "|   `\(kind)` | | \(value.count) | | \(fixed(mean, 2)) | | | | "
          + "\(slowest): \(value.decided) |")
    }
  }
}
