import CLinux
import Glibc
import Hibernation
import Linux

/// Handles signals to the daemon. Belongs to the loop's thread.
final class DaemonSignals {
  private let services: Services
  private let orphans: OrphanReaper
  private let reloader: ConfigurationReloader
  private let ending: DaemonEnd

  init(
    _ services: Services, orphans: OrphanReaper, reloader: ConfigurationReloader, ending: DaemonEnd
  ) {
    self.services = services
    self.orphans = orphans
    self.reloader = reloader
    self.ending = ending
  }

  /// Begins to receive signals on the loop. They are blocked from now on.
  func follow() throws(SystemCallError) {
    _ = clinux_report_stops_of_children(0)
    let signals = try SignalQueue([SIGTERM, SIGINT, SIGHUP, SIGCHLD])
    try services.loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() { handle(signal.number) }
    }
  }

  /// Handles one signal that was received.
  func handle(_ signal: Int32) {
    switch signal {
    case SIGCHLD:
      // The kernel hides the end of a traced worker until its tracer waits for it. Orphans must be
      // reaped.
      services.hibernation.reapChildren()
      orphans.reapOrphans()
    case SIGHUP:
      reloader.reload(allowEmpty: false) { [log = services.log] in
        log($0.isDone ? .notice : .error, "reload: \($0.text)")
      }
    default: ending.didReceiveSignal()
    }
  }
}
