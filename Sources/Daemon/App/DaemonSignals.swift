import CLinux
import Glibc
import Hibernation
import Linux

/// Handles signals to the daemon. Belongs to the loop's thread.
final class DaemonSignals {
  private let loop: EventLoop
  private let hibernation: HibernationService
  private let log: DaemonLog
  private let orphans: OrphanReaper
  private let reloader: ConfigurationReloader
  private let ending: DaemonEnd

  init(
    services: Services, orphans: OrphanReaper, reloader: ConfigurationReloader,
    ending: DaemonEnd
  ) {
    loop = services.loop
    hibernation = services.hibernation
    log = services.log
    self.orphans = orphans
    self.reloader = reloader
    self.ending = ending
  }

  /// From now on signals are delivered here.
  func follow() throws(SystemCallError) {
    _ = clinux_ignore_stops_of_children()
    let signals = try SignalQueue([SIGTERM, SIGINT, SIGHUP, SIGCHLD])
    try loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() { handle(signal.number) }
    }
  }

  private func handle(_ signal: Int32) {
    if signal == SIGCHLD {
      // The kernel hides a traced worker's end until its tracer looks, and orphans must be reaped.
      hibernation.reapChildren()
      orphans.reapOrphans()
    } else if signal == SIGHUP {
      reloader.reload(allowEmpty: false) { [log] in
        log($0.isDone ? .notice : .error, "reload: \($0.text)")
      }
    } else {
      ending.signalHasCome()
    }
  }
}
