import Lifecycle
import Policy

// Trims on the simulated machine.

extension SimulatedMachine {
  mutating func trim(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "trims \(worker), which doesn't run" }
    guard workers[worker]?.isMoving == false else { return "trims \(worker) twice" }
    // The outcome is sometimes lost. The engine must not wait for it forever.
    if random.chance(3) { return nil }
    workers[worker]?.isMoving = true
    let footprint = workers[worker]?.footprint ?? .zero
    let moved = ByteCount(footprint.bytes / random.pick([2, 3, 50]))
    let result = TrimResult(
      residentBefore: footprint, residentAfter: footprint - moved, swapped: moved,
      duration: .milliseconds(30))
    let event: Event =
      random.chance(12)
      ? .trimFailed(worker, "there is no swap", permanent: random.chance(30))
      : .trimmed(worker, result)
    schedule(event, of: worker, upTo: .seconds(2))
    return nil
  }

  mutating func fill(_ worker: WorkerID) -> String? {
    guard body(worker) == .running else { return "fills \(worker), which doesn't run" }
    guard workers[worker]?.isMoving == false else { return "fills \(worker) twice" }
    if random.chance(3) { return nil }
    workers[worker]?.isMoving = true
    let event: Event =
      random.chance(12)
      ? .fillFailed(worker, "its memory can't be read") : .filled(worker, swapped: .zero)
    schedule(event, of: worker, upTo: .seconds(2))
    return nil
  }
}
