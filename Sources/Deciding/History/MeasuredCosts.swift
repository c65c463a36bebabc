import Journal
import Lifecycle
import Policy
import Simulation

/// What the operations cost in a journal. A cost that was never measured keeps the simulation's
/// default.
public struct MeasuredCosts: Sendable, Hashable {
  var resume = ResumeFit()
  var suspendedWake = Mean()
  var suspend = Mean()
  var exit = Mean()
  /// Seconds for each byte.
  var hibernate = Mean()
  var imageShare = Mean()
  /// The footprint of hibernated workers, in bytes.
  var hibernatedFootprint = Mean()
  /// The trims of all workers, and those of each worker.
  var trims = MeasuredTrims()
  var workerTrims: [WorkerID: MeasuredTrims] = [:]

  typealias Mean = CostModel.Mean

  /// A line through the measured resumes: seconds over megabytes of footprint, as a base and a
  /// rate.
  struct ResumeFit: Sendable, Hashable {
    private(set) var count = 0
    private var (x, y, xx, xy) = (0.0, 0.0, 0.0, 0.0)

    mutating func add(megabytes: Double, seconds: Double) {
      count += 1
      x += megabytes
      y += seconds
      xx += megabytes * megabytes
      xy += megabytes * seconds
    }

    /// The base in seconds and the rate in seconds for each megabyte; `nil`: nothing was measured.
    /// If the footprints hardly differ, no rate can be calculated, and the proportions of the
    /// default values are kept.
    func line(_ base: Double, _ rate: Double) -> (base: Double, rate: Double)? {
      guard count > 0, x > 0 else { return nil }
      let n = Double(count)
      let (meanX, meanY) = (x / n, y / n)
      let spread = xx / n - meanX * meanX
      guard count >= 3, spread > meanX * meanX / 100 else {
        let factor = meanY / (base + rate * meanX)
        return (base * factor, rate * factor)
      }
      let slope = (xy / n - meanX * meanY) / spread
      let start = min(max(0, meanY - slope * meanX), meanY)
      return (start, (meanY - start) / meanX)
    }
  }

  /// The workers that weren't suspended because they work by their own timers.
  var staysAwake: Set<WorkerID> = []

  public init() {}

  /// The machine's model with the measured costs in place of its defaults.
  public func applied(to machine: MachineModel) -> MachineModel {
    var machine = machine
    let (base, rate) = (machine.resumeBase, machine.resumePerMegabyte)
    if let line = resume.line(base / .seconds(1), rate / .seconds(1)) {
      machine.resumeBase = .seconds(line.base)
      machine.resumePerMegabyte = .seconds(line.rate)
    }
    if let time = suspendedWake.value {
      // A resume from an image isn't faster than a wake without one, so this machine is slower than
      // the default.
      let slower = .seconds(time) - machine.suspendedWake
      if resume.count == 0 { machine.resumeBase += max(.zero, slower) }
      machine.suspendedWake = .seconds(time)
    }
    if let time = suspend.value { machine.suspend = .seconds(time) }
    if let time = exit.value { machine.exit = .seconds(time) }
    if let time = hibernate.value, time > 0 {
      machine.hibernateBase = .zero
      machine.hibernateRate = ByteCount(Int64(min(1 / time, 1e12)))
    }
    if let share = imageShare.value { machine.imageShare = min(1, share) }
    if let bytes = hibernatedFootprint.value {
      machine.hibernatedFootprint = ByteCount(Int64(bytes))
    }
    if let shares = trims.shares(machine.trim) { machine.trim = shares }
    machine.measuredTrims = workerTrims.compactMapValues { $0.shares(machine.trim) }
    machine.staysAwake = staysAwake
    // Footprints are averages: they include what workers free on request, and what they lack after
    // a launch.
    machine.shedShare = 0
    machine.launchedShare = 1
    return machine
  }

  /// A text for each kind of cost that was measured, with its numbers.
  public func measured(_ machine: MachineModel) -> [String] {
    var texts: [String] = []
    func milliseconds(_ duration: Duration) -> String {
      let hundredths = Int((duration / .milliseconds(1) * 100).rounded())
      let remainder = hundredths % 100
      return "\(hundredths / 100).\(remainder < 10 ? "0" : "")\(remainder) ms"
    }
    if resume.count > 0 {
      texts.append(
        "resume \(milliseconds(machine.resumeBase)) + "
          + "\(milliseconds(machine.resumePerMegabyte))/MB (\(resume.count) measured)")
    }
    if suspendedWake.count > 0 {
      texts.append(
        "wake from suspension \(milliseconds(machine.suspendedWake)) (\(suspendedWake.count))")
    }
    if hibernate.count > 0 {
      let share = Int((machine.imageShare * 100).rounded())
      texts.append(
        "hibernation \(machine.hibernateRate.bytes >> 20) MB/s, images \(share) % "
          + "(\(hibernate.count))")
    }
    if trims.count > 0 {
      func percent(_ share: Double) -> Int { Int((share * 100).rounded()) }
      texts.append(
        "trims leave \(percent(machine.trim.left)) % in RAM, "
          + "\(percent(machine.trim.returned)) % of the rest comes back (\(trims.count))")
    } else if trims.failures > 0 {
      texts.append("no trim succeeded, so none is simulated")
    }
    return texts
  }
}
