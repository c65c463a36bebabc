import Glibc
import Policy

/// Makes traces from a seed. Footprints, launch times and durations are lognormal, popularity
/// follows Zipf's law (s = 1), and arrivals are Poisson. Measurements of function services and of
/// phones have found these distributions (Shahrad et al., Serverless in the Wild, 2020: most are
/// used rarely, few very often).
public struct TraceGenerator: Sendable {
  public enum Pattern: String, Sendable, CaseIterable {
    /// Uses follow the workers' popularity alone.
    case zipf
    /// Each worker has its hours of use, most of them in daytime.
    case daily
    /// At intervals a group of rarely used workers is used at the same time.
    case bursts
    /// One worker in twenty leaks memory.
    case leaks
    /// Uses are as far apart as the policies' waiting times, and the memory use of the host's other
    /// programs swings. This is the worst case for a policy that switches to and fro.
    case flapping
  }

  public var pattern: Pattern
  public var workers: Int
  /// The length of the trace in milliseconds.
  public var length: Int64
  public var seed: UInt64
  /// The mean number of uses of a worker in an hour.
  public var usesPerHour: Double

  public init(
    pattern: Pattern, workers: Int, length: Int64, seed: UInt64, usesPerHour: Double = 2
  ) {
    self.pattern = pattern
    self.workers = workers
    self.length = length
    self.seed = seed
    self.usesPerHour = usesPerHour
  }

  /// Makes the trace. The same values give the same trace.
  public func trace() -> Trace {
    var random = SplitMix64(seed: seed)
    let names = String(workers - 1).count
    var trace = Trace(
      name: "\(pattern.rawValue), seed \(seed)", length: length, workers: [], uses: [])
    for number in 0..<workers {
      let digits = String(number)
      let name = "w" + String(repeating: "0", count: names - digits.count) + digits
      trace.workers.append(worker(name, &random))
    }
    trace.uses = pattern == .flapping ? flapping(&random) : popular(&random)
    if pattern == .bursts { trace.uses += bursts(&random) }
    trace.uses.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    trace.others = others(&random)
    return trace
  }

  private func worker(_ name: String, _ random: inout SplitMix64) -> TraceWorker {
    let megabytes = min(max(random.logNormal(median: 12, sigma: 1), 2), 1024)
    // A python server that builds its state needs 20 ms, and 3.3 ms for each MB
    // (Benchmarks/results).
    let launch = 20 + 3.3 * megabytes * random.logNormal(median: 1, sigma: 0.7)
    let leaks = pattern == .leaks && random.chance(5)
    let hourly = leaks ? random.logNormal(median: 100, sigma: 0.7) : 0
    return TraceWorker(
      name: name, footprint: ByteCount(Int64(megabytes * 1_048_576)),
      launch: .milliseconds(Int64(launch)), leak: ByteCount(Int64(hourly * 1_048_576)),
      importance: random.pick([0, 0, 0, 50]))
  }

  private func duration(_ random: inout SplitMix64) -> Int32 {
    Int32(min(random.logNormal(median: 300, sigma: 1.5), 600_000))
  }

  /// One Poisson process makes the uses of all workers. Popularity, and in `daily` the hour, decide
  /// which worker is used.
  private func popular(_ random: inout SplitMix64) -> [Trace.Use] {
    let popularity = Popularity(workers, &random)
    let phases = (0..<workers).map { _ in 0.5 + 0.12 * random.normal() }
    let daily = pattern == .daily
    // In `daily`, uses are made twice as often, and half of them are dropped at random (thinning).
    // The mean stays the same.
    let gap = 3_600_000 / (usesPerHour * Double(workers)) / (daily ? 2 : 1)
    var uses: [Trace.Use] = []
    var at = random.exponential(mean: gap)
    while at < Double(length) {
      let worker = popularity.pick(&random)
      let hour = at / 86_400_000
      let share = daily ? 0.5 + 0.5 * cos(2 * .pi * (hour - phases[worker])) : 1
      if random.unit() < share {
        uses.append(
          Trace.Use(at: Int64(at), worker: Int32(worker), duration: duration(&random)))
      }
      at += random.exponential(mean: gap)
    }
    return uses
  }

  /// There are three bursts an hour. A twentieth of all workers is used for two to ten minutes,
  /// each about every ten seconds.
  private func bursts(_ random: inout SplitMix64) -> [Trace.Use] {
    var uses: [Trace.Use] = []
    var at = random.exponential(mean: 1_200_000)
    while at < Double(length) {
      let first = Int(random.next() % UInt64(workers))
      let end = min(at + 120_000 + random.unit() * 480_000, Double(length))
      for number in 0..<max(1, workers / 20) {
        let worker = Int32((first + number) % workers)
        var time = at + random.exponential(mean: 10_000)
        while time < end {
          uses.append(Trace.Use(at: Int64(time), worker: worker, duration: duration(&random)))
          time += random.exponential(mean: 10_000)
        }
      }
      at += random.exponential(mean: 1_200_000)
    }
    return uses
  }

  /// Each worker has its own period of 20 s to 5 min. A tenth of the workers is used at any time.
  private func flapping(_ random: inout SplitMix64) -> [Trace.Use] {
    var uses: [Trace.Use] = []
    for worker in 0..<workers {
      let period = 20_000 + random.unit() * 280_000
      let stretch = period * 3_600_000 / (usesPerHour * 60_000) / 60
      var at = random.unit() * Double(length) / 10
      while at < Double(length) {
        let end = at + 10 * max(period, stretch / 10)
        while at < min(end, Double(length)) {
          uses.append(
            Trace.Use(at: Int64(at), worker: Int32(worker), duration: duration(&random)))
          at += period * (0.9 + 0.2 * random.unit())
        }
        at += 9 * (end - at).magnitude + random.exponential(mean: 60 * period)
      }
    }
    return uses
  }

  /// The other programs of the machine use a tenth of its memory. In `flapping` they use up to four
  /// tenths every few minutes.
  private func others(_ random: inout SplitMix64) -> [Trace.HostChange] {
    var changes = [Trace.HostChange(at: 0, share: 0.1)]
    guard pattern == .flapping else { return changes }
    var at = random.exponential(mean: 300_000)
    while at < Double(length) {
      let isHigh = (changes.last?.share ?? 0) > 0.15
      let share = isHigh ? 0.1 : 0.2 + 0.2 * random.unit()
      changes.append(Trace.HostChange(at: Int64(at), share: share))
      at += random.exponential(mean: isHigh ? 300_000 : 60_000)
    }
    return changes
  }
}

/// Zipf's law over workers in random order, so that the popular ones aren't those with the lowest
/// numbers.
private struct Popularity {
  private var sums: [Double] = []
  private var order: [Int]

  init(_ count: Int, _ random: inout SplitMix64) {
    order = Array(0..<count).shuffled(using: &random)
    var sum = 0.0
    for index in 0..<count {
      sum += 1 / Double(index + 1)
      sums.append(sum)
    }
  }

  func pick(_ random: inout SplitMix64) -> Int {
    let target = random.unit() * (sums.last ?? 0)
    var low = 0
    var high = sums.count - 1
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] < target { low = middle + 1 } else { high = middle }
    }
    return order[low]
  }
}
