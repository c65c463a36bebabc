import Lifecycle
import Policy

// Trims on the simulated machine. A trim leaves a share of the worker's memory in RAM, and its next
// use brings back a share of the rest. What comes back stays in RAM until the next trim.

extension FleetSimulation {
  private static let trimTime = Duration.milliseconds(30)

  mutating func beginTrim(_ worker: Int) {
    let id = workers[worker].id
    guard shares(of: worker).left < 1 else {
      let failure = Event.trimFailed(id, "it can't be trimmed here", permanent: true)
      return schedule(failure, of: worker, in: .milliseconds(1))
    }
    steps.add(
      at: now + Self.trimTime.wholeNanoseconds, worker: Int32(worker), life: workers[worker].life,
      kind: .trimEnds)
  }

  private func shares(of worker: Int) -> MachineModel.TrimShares {
    machine.measuredTrims[workers[worker].id] ?? machine.trim
  }

  mutating func endTrim(_ number: Int32, _ life: Int32) {
    let worker = Int(number)
    guard workers[worker].life == life, workers[worker].body == .running else { return }
    let (before, memory) = (workers[worker].resident, workers[worker].memory)
    let after = min(before, Int64(Double(memory) * shares(of: worker).left))
    setMemory(worker, resident: after, trimmed: memory - after)
    workers[worker].returning = Int64(Double(memory - after) * shares(of: worker).returned)
    workers[worker].account.trims += 1
    report.trims += 1
    let result = TrimResult(
      residentBefore: ByteCount(before), residentAfter: ByteCount(after),
      swapped: ByteCount(memory - after), duration: Self.trimTime)
    deliver(.trimmed(workers[worker].id, result))
  }

  /// Brings back what the worker's first use after a trim needs.
  ///
  /// - Returns: the bytes that came back.
  @discardableResult
  mutating func bringBackTrimmed(_ worker: Int) -> Int64 {
    let one = workers[worker]
    let bytes = min(one.returning, one.trimmed)
    guard bytes > 0, one.body == .running else { return 0 }
    workers[worker].returning = 0
    setMemory(worker, resident: one.resident + bytes, trimmed: one.trimmed - bytes)
    // The kernel's OOM killer may have ended the worker.
    guard workers[worker].body == .running else { return bytes }
    deliver(.swapped(one.id, ByteCount(workers[worker].trimmed)))
    deliver(.footprint(one.id, ByteCount(workers[worker].memory)))
    return bytes
  }

  mutating func waitForTrimmed(_ bytes: Int64, _ worker: Int) {
    let wait = machine.trimReturnPerMegabyte * (Double(bytes) / 1_048_576)
    report.trimWaitSeconds += wait / .seconds(1)
    workers[worker].account.waitSeconds += wait / .seconds(1)
  }

  private mutating func setMemory(_ worker: Int, resident: Int64, trimmed: Int64) {
    workers[worker].addElapsedTime(at: now)
    workers[worker].trimmed = trimmed
    setResident(worker, resident)
  }
}
