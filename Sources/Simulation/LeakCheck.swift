import Lifecycle
import Policy

/// What a suspicion of a leak has to say at least, without the engine's own rules. The newest footprint may be half of
/// the growth below the highest.
enum LeakCheck {
  /// What is wrong with it.
  static func check(_ leak: LeakSuspicion, of worker: WorkerID) -> String? {
    let growth = leak.footprint - leak.before
    if leak.suspensions < LeakSuspicion.leastSuspensions || growth < .megabytes(2)
      || growth.bytes * 20 < leak.footprint.bytes
    {
      return "\(worker) has no evidence of a leak: \(leak.sentence)"
    }
    return nil
  }
}
