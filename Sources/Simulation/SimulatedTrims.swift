import Lifecycle
import Policy

// Trims on the simulated machine.

extension SimulatedMachine {
  mutating func trim(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "trims \(worker), which doesn't run" }
    guard !isMoving(worker) else { return "trims \(worker) twice" }
    // The directive is sometimes lost. The engine must not wait for an outcome forever.
    if random.chance(3) { return nil }
    workers[worker]?.movingSince = now
    let resident = workers[worker]?.resident ?? .zero
    let moved = ByteCount(resident.bytes / random.pick([2, 3, 50]))
    let result = TrimResult(
      residentBefore: resident, residentAfter: resident - moved,
      swapped: (workers[worker]?.swapped ?? .zero) + moved,
      inImage: moved.bytes % 2 == 0 ? nil : moved, duration: .milliseconds(30))
    let event: Event =
      random.chance(12)
      ? .trimFailed(worker, "there is no swap", permanent: random.chance(30))
      : .trimmed(worker, result)
    schedule(event, of: worker, upTo: .seconds(2))
    return nil
  }

  mutating func fill(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "fills \(worker), which doesn't run" }
    guard !isMoving(worker) else { return "fills \(worker) twice" }
    if random.chance(3) { return nil }
    workers[worker]?.movingSince = now
    let left = random.pick([.zero, ByteCount.kilobytes(4)])
    let event: Event =
      random.chance(12)
      ? .fillFailed(worker, "its memory can't be read") : .filled(worker, swapped: left)
    schedule(event, of: worker, upTo: .seconds(2))
    return nil
  }

  /// Whether the worker's memory is being moved. If the clock jumps, the engine doesn't wait for
  /// the outcome any longer.
  func isMoving(_ worker: WorkerID) -> Bool {
    workers[worker]?.movingSince.map { now < $0 + .seconds(60) } ?? false
  }

  /// Brings back all memory of a worker, whether or not a trim has moved any. A later measurement
  /// reports how much is in swap.
  mutating func loseTrim(_ worker: WorkerID) -> Event? {
    guard body(worker) == .running else { return nil }
    workers[worker]?.swapped = .zero
    return .trimLost(worker, "it forks often")
  }

  /// Measures a worker with memory in swap, of which some may have come back.
  mutating func refault(_ worker: WorkerID) -> Event? {
    guard let swapped = workers[worker]?.swapped, body(worker) != .absent else { return nil }
    // The kernel swaps by itself, too.
    let other = ByteCount((workers[worker]?.footprint ?? .zero).bytes / 3)
    let now = random.pick([swapped, ByteCount(swapped.bytes / 2), .zero, other])
    workers[worker]?.swapped = now
    schedule(
      .footprint(worker, workers[worker]?.footprint ?? .zero), of: worker, upTo: .milliseconds(1))
    return .swapped(worker, now)
  }
}

extension SimulatedWorker {
  /// The part of its footprint that is in RAM.
  var resident: ByteCount { max(.zero, footprint - swapped) }
}
