import Lifecycle

/// What a suspicion of a leak has to say at least, without the engine's own rules.
enum LeakCheck {
  /// What is wrong with it.
  static func check(_ leak: LeakSuspicion, of worker: WorkerID) -> String? {
    let growth = leak.footprint - leak.before
    if leak.suspensions < LeakSuspicion.leastSuspensions || growth < LeakSuspicion.leastGrowth
      || growth.bytes * 10 < leak.footprint.bytes
    {
      return "\(worker) has no evidence of a leak: \(leak.sentence)"
    }
    return nil
  }
}
