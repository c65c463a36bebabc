import Glibc
import Lifecycle
import Policy

// How long the engine takes for a decision, against the number of workers. `Benchmarks/engine.py`
// builds and runs it.

/// One distribution of decision times.
struct Times {
  private(set) var values: [UInt64] = []
  mutating func add(_ value: UInt64) { values.append(value) }

  func summary(_ name: String, _ count: Int, mallocs: Double?) -> String {
    let sorted = values.sorted()
    func at(_ share: Double) -> Double {
      sorted.isEmpty ? 0 : Double(sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))])
    }
    let mean = Double(sorted.reduce(0, +)) / Double(max(1, sorted.count))
    func micro(_ nanoseconds: Double) -> String { fixed(nanoseconds / 1000, 2) }
    let cells = [
      name, "\(count)", "\(sorted.count)", "\(Int(1e9 / mean))", micro(mean), micro(at(0.5)),
      micro(at(0.99)), micro(at(0.999)), mallocs.map { fixed($0, 1) } ?? "–",
    ]
    return "| " + cells.joined(separator: " | ") + " |"
  }
}

func fixed(_ value: Double, _ places: Int) -> String {
  let scale = places == 2 ? 100.0 : 10.0
  let scaled = Int((value * scale).rounded())
  let rest = "\(scaled % Int(scale))"
  return "\(scaled / Int(scale))."
    + String(repeating: "0", count: places - rest.count) + rest
}

var server: LifecyclePolicy {
  var policy = LifecyclePolicy(name: "server")
  policy.foreground = ForegroundRules(mode: .activity, max: nil)
  policy.hibernate.after = .seconds(120)
  policy.hibernate.maxFootprint = .megabytes(256)
  policy.terminate.order = [.band, .recency, .footprint]
  return policy
}

/// Any event that comes along.
func mixed(_ name: String, _ policy: LifecyclePolicy, _ count: Int, available: Int64, _ events: Int)
{
  var fleet = Fleet(count, policy)
  fleet.rest(.seconds(60))
  // Every worker has been used and has slept.
  for _ in 0..<(3 * count) {
    fleet.perform(fleet.decide(fleet.nextEvent(available: available)).directives)
  }
  var times = Times()
  var mallocs: UInt64 = 0
  for _ in 0..<events {
    let event = fleet.nextEvent(available: available)
    let before = Mallocs.count ?? 0
    let (time, directives) = fleet.decide(event)
    mallocs += (Mallocs.count ?? 0) - before
    times.add(time)
    fleet.perform(directives)
  }
  let share = Mallocs.count.map { _ in Double(mallocs) / Double(events) }
  print(times.summary(name, count, mallocs: share))
}

/// The decisions that choose a victim: all asleep, and hardly any memory.
func steps(_ count: Int) {
  var policy = LifecyclePolicy()
  policy.foreground.max = nil
  policy.hibernate.enabled = false
  var fleet = Fleet(count, policy)
  for _ in 0..<count {
    fleet.perform(fleet.decide(fleet.nextEvent(available: 50)).directives)
  }
  fleet.rest(.seconds(300))
  var (first, next) = (Times(), Times())
  for _ in 0..<200 {
    // The first of a burst also collects all workers for the report.
    var isFirst = true
    for _ in 0..<3 {
      fleet.wait(.seconds(1))
      let (time, directives) = fleet.decide(fleet.reading(available: 3))
      let victims = directives.contains { if case .terminate = $0 { true } else { false } }
      if victims {
        if isFirst { first.add(time) } else { next.add(time) }
        isFirst = false
      }
      fleet.perform(directives)
      fleet.catchUp()
    }
    fleet.wait(.seconds(1))
    fleet.perform(fleet.decide(fleet.reading(available: 50)).directives)
    fleet.rest(.seconds(60))
  }
  print(first.summary("first victim of a burst, with its picture", count, mallocs: nil))
  print(next.summary("next victim", count, mallocs: nil))
}

/// Events under the highest level when the ladder has nothing left to take: the policy has no rung
/// for workers that run.
func nothingLeft(_ count: Int, _ policy: LifecyclePolicy) {
  var policy = policy
  policy.ladder = Ladder(warning: [], urgent: [], critical: [.terminate(.suspended)])
  policy.background.suspendAfter = nil
  mixed("mixed, critical, nothing left to take", policy, count, available: 3, 50_000)
}

if CommandLine.arguments.dropFirst().first == "worst" {
  var ios = LifecyclePolicy()
  ios.name = "ios-5"
  WorstSearch(workers: 10_000, hours: 1).run([ios, server])
  exit(0)
}

// One row, for a profile.
if CommandLine.arguments.dropFirst().first == "warning" {
  mixed("mixed, pressure at the warning level", server, 10_000, available: 14, 400_000)
  exit(0)
}

print(
  """
  | work | workers | decisions | a second | mean µs | median | p99 | p99.9 | allocations |
  |---|---:|---:|---:|---:|---:|---:|---:|---:|
  """)
let counts = [10, 100, 1_000, 10_000]
for count in counts {
  mixed("mixed, memory enough, by activity", server, count, available: 50, 200_000)
}
for count in counts {
  mixed("mixed, memory enough, ios-5", LifecyclePolicy(), count, available: 50, 200_000)
}
for count in counts {
  mixed("mixed, pressure at the warning level", server, count, available: 14, 200_000)
}
for count in counts { nothingLeft(count, server) }
for count in counts { steps(count) }
