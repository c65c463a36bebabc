import Lifecycle
import Policy

/// Estimates the outcome of a directive that wasn't carried out. The estimate is the mean of this
/// worker in the journal, or else the mean of the other workers, or else a constant.
public struct CostModel: Sendable {
  /// The measured costs of one worker, or of all workers together.
  struct Costs: Sendable {
    var launch = Mean()
    var suspend = Mean()
    var terminate = Mean()
    var answer = Mean()
    /// The seconds for a byte of footprint, for hibernation.
    var hibernatePerByte = Mean()
    /// The seconds for a byte of footprint, for resume.
    var resumePerByte = Mean()
    /// The share of the footprint that is left after hibernation: 0–1.
    var leftHibernated = Mean()
    /// The share of the footprint that is left after a request to shed: 0–1.
    var leftShed = Mean()
    /// The share of the memory in RAM that is left there after a trim: 0–1.
    var leftTrimmed = Mean()
  }

  /// An average. Values may have weights.
  public struct Mean: Sendable, Hashable {
    public private(set) var count = 0
    private var sum = 0.0
    private var weights = 0.0

    public init() {}

    public mutating func add(_ value: Double, weight: Double = 1) {
      count += 1
      sum += value * weight
      weights += weight
    }
    public var value: Double? { weights > 0 ? sum / weights : nil }
  }

  private var costs: [WorkerID: Costs] = [:]
  private var all = Costs()
  private var staysAwake: Set<WorkerID> = []
  private var begun: [WorkerID: [Operation: Instant]] = [:]
  private enum Operation: Hashable { case launch, suspend, terminate, shed }

  public init() {}

  /// Learns from a step. The whole journal is read before any outcome is estimated.
  public mutating func visit(_ step: JournalStep, _ engine: Engine) {
    guard case .event(let event) = step.kind else {
      begun = [:]
      return
    }
    learn(event, at: step.at, engine)
    for directive in step.directives {
      switch directive {
      case .launch(let worker): begun[worker, default: [:]][.launch] = step.at
      case .suspend(let worker): begun[worker, default: [:]][.suspend] = step.at
      case .terminate(let worker): begun[worker, default: [:]][.terminate] = step.at
      case .shed(let worker, _, _): begun[worker, default: [:]][.shed] = step.at
      default: break
      }
    }
  }

  private mutating func learn(_ event: Event, at now: Instant, _ engine: Engine) {
    guard let worker = event.subject else { return }
    func chargeTime(since operation: Operation, to mean: WritableKeyPath<Costs, Mean>) {
      guard let start = begun[worker]?[operation] else { return }
      charge(worker) { $0[keyPath: mean].add(Double((now - start).wholeNanoseconds) / 1e9) }
    }
    switch event {
    case .ready: chargeTime(since: .launch, to: \.launch)
    case .suspended: chargeTime(since: .suspend, to: \.suspend)
    case .staysAwake: staysAwake.insert(worker)
    case .exited:
      chargeTime(since: .terminate, to: \.terminate)
      begun[worker] = nil
    case .shedAnswered: chargeTime(since: .shed, to: \.answer)
    case .shedFinished(_, let before, let after) where before > .zero:
      charge(worker) { $0.leftShed.add(Double(after.bytes) / Double(before.bytes)) }
    case .trimmed(_, let result) where result.residentBefore > .zero:
      let left = Double(result.residentAfter.bytes) / Double(result.residentBefore.bytes)
      charge(worker) { $0.leftTrimmed.add(left) }
    case .hibernated(_, let result) where result.footprintBefore > .zero:
      let before = Double(result.footprintBefore.bytes)
      charge(worker) {
        $0.leftHibernated.add(Double(result.footprintAfter.bytes) / before)
        $0.hibernatePerByte.add(Double(result.duration.wholeNanoseconds) / 1e9 / before)
      }
    case .resumed(_, let took):
      guard let asleep = engine.snapshot(of: worker)?.peakFootprint, asleep > .zero else { break }
      let time = Double(took.wholeNanoseconds) / 1e9 / Double(asleep.bytes)
      charge(worker) { $0.resumePerByte.add(time) }
    default: break
    }
  }

  private mutating func charge(_ worker: WorkerID, _ change: (inout Costs) -> Void) {
    change(&costs[worker, default: Costs()])
    change(&all)
  }

  private func value(
    _ worker: WorkerID, _ path: KeyPath<Costs, Mean>, otherwise: Double
  ) -> Double {
    costs[worker]?[keyPath: path].value ?? all[keyPath: path].value ?? otherwise
  }

  // MARK: assumptions for what the journal lacks

  func launch(_ worker: WorkerID) -> Duration {
    .seconds(value(worker, \.launch, otherwise: 1))
  }
  func suspend(_ worker: WorkerID) -> Duration {
    .seconds(value(worker, \.suspend, otherwise: 0.005))
  }
  /// Whether the worker works by its own timers.
  func staysAwake(_ worker: WorkerID) -> Bool { staysAwake.contains(worker) }
  func terminate(_ worker: WorkerID) -> Duration {
    .seconds(value(worker, \.terminate, otherwise: 0.1))
  }
  /// Returns nil for a worker that has never answered: it doesn't answer here either.
  func answer(_ worker: WorkerID) -> Duration? {
    costs[worker]?.answer.value.map { .seconds($0) }
  }
  func afterShedding(_ worker: WorkerID, _ footprint: ByteCount) -> ByteCount {
    // A worker without a measured request to shed in the journal is assumed to free nothing.
    let left = costs[worker]?.leftShed.value ?? 1
    return ByteCount(Int64(Double(footprint.bytes) * left))
  }
  /// Returns nil if the journal has no trim: whether the machine can trim isn't known.
  func trim(_ worker: WorkerID, resident: ByteCount, swapped: ByteCount) -> TrimResult? {
    guard let left = costs[worker]?.leftTrimmed.value ?? all.leftTrimmed.value else { return nil }
    let moved = ByteCount(Int64(Double(resident.bytes) * max(0, 1 - left)))
    return TrimResult(
      residentBefore: resident, residentAfter: resident - moved, swapped: swapped + moved,
      duration: .milliseconds(30))
  }
  /// The default is 200 MB/s with compression, and 1 % that can't be moved.
  func hibernation(_ worker: WorkerID, _ footprint: ByteCount) -> HibernationResult {
    let bytes = Double(footprint.bytes)
    return HibernationResult(
      footprintBefore: footprint,
      footprintAfter: ByteCount(
        Int64(bytes * min(1, value(worker, \.leftHibernated, otherwise: 0.01)))),
      imageSize: ByteCount(Int64(bytes / 4)),
      duration: .seconds(bytes * value(worker, \.hibernatePerByte, otherwise: 5e-9)))
  }
  /// The default is 1 GB/s, and the minimum is 1 ms. A wake from suspension alone costs 0.1 ms.
  func resume(_ worker: WorkerID, hibernated footprint: ByteCount?) -> Duration {
    guard let footprint else { return .microseconds(100) }
    return .seconds(
      max(0.001, Double(footprint.bytes) * value(worker, \.resumePerByte, otherwise: 1e-9)))
  }
}
