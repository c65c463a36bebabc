import Lifecycle
import Policy

extension WorkerRegistry {
  /// The time that the workers may need at the daemon's end: by their policies from the stop signal
  /// to SIGKILL, one layer of dependencies after the other, and a minute in which memory is
  /// restored. It has an upper limit of an hour.
  func timeToEnd(_ isAlive: (WorkerID) -> Bool) -> Duration {
    // Another program ends an external worker.
    var left = values.filter { isAlive($0.id) && $0.external == nil }
    var time = Duration.seconds(60)
    while !left.isEmpty {
      let needed = Set(left.flatMap { $0.configuration.dependsOn.map { WorkerID($0.worker) } })
      let layer = left.filter { !needed.contains($0.id) }
      // Workers that need each other are stopped in no order.
      if layer.isEmpty { break }
      let graces = layer.map { worker in
        let policy = worker.configuration.policy
        return policy.terminate.grace + policy.watchdog.maxExtension
      }
      time += graces.max() ?? .zero
      left.removeAll { !needed.contains($0.id) }
    }
    return min(time, .seconds(3600))
  }
}

extension ServiceManager {
  /// The message by which systemd gives the service more time than its `TimeoutStopSec=`, and never
  /// less (sd_notify(3)).
  static func request(moreTime time: Duration) -> String {
    "EXTEND_TIMEOUT_USEC=\(time.components.seconds * 1_000_000)"
  }
}
