import Lifecycle
import Policy

/// Checks the suspicion of a leak, independently of the engine's rules. The bounds are half of the
/// engine's, because the newest footprint may be below the highest one by half of the growth.
enum LeakCheck {
  /// Returns a complaint, or `nil`.
  static func check(_ leak: LeakSuspicion, of worker: WorkerID) -> String? {
    let growth = leak.footprint - leak.before
    if leak.suspensions < LeakSuspicion.minSuspensions || growth < .megabytes(2)
      || growth.bytes * 20 < leak.footprint.bytes
    {
      return "\(worker) has no evidence of a leak: \(leak.sentence)"
    }
    return nil
  }
}
