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

  /// From now on signals are delivered here.
  func follow() throws(SystemCallError) {
    _ = clinux_report_stops_of_children(0)
    let signals = try SignalQueue([SIGTERM, SIGINT, SIGHUP, SIGCHLD])
    try services.loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() { handle(signal.number) }
    }
  }

  /// One has come.
  func handle(_ signal: Int32) {
    switch signal {
    case SIGCHLD:
      // A traced worker's end is hidden until its tracer looks; orphans must be reaped.
      services.hibernation.reapChildren()
      orphans.reapOrphans()
    case SIGHUP:
      reloader.reload(allowEmpty: false) { [log = services.log] in
        log($0.isDone ? .notice : .error, "reload: \($0.text)")
      }
    default: ending.signalHasCome()
    }
  }
}
