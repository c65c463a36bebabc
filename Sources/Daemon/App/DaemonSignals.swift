import CLinux
import Glibc
import Hibernation
import Linux

/// What `DaemonSignals` needs of the daemon. Tests hand in their own.
protocol SignalHost: AnyObject {
  /// Children have ended: orphans, and workers that are traced.
  func reapChildren()
  /// Reads the configuration again.
  func reload(then report: @escaping (ReloadOutcome) -> Void)
  func endIsAsked()
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// Handles signals to the daemon. Belongs to the loop's thread.
final class DaemonSignals {
  private let loop: EventLoop
  private let host: any SignalHost

  init(loop: EventLoop, host: any SignalHost) {
    self.loop = loop
    self.host = host
  }

  /// From now on signals are delivered here.
  func follow() throws(SystemCallError) {
    _ = clinux_report_stops_of_children(0)
    let signals = try SignalQueue([SIGTERM, SIGINT, SIGHUP, SIGCHLD])
    try loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() { handle(signal.number) }
    }
  }

  /// One has come.
  func handle(_ signal: Int32) {
    switch signal {
    case SIGCHLD: host.reapChildren()
    case SIGHUP:
      host.reload { [host] in host.log($0.isDone ? .notice : .error, "reload: \($0.text)") }
    default: host.endIsAsked()
    }
  }
}

/// What `DaemonSignals` gets of the daemon.
final class SignalsOfDaemon: SignalHost {
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

  func reapChildren() {
    // A traced worker's end is hidden until its tracer looks; orphans must be reaped.
    services.hibernation.reapChildren()
    orphans.reapOrphans()
  }

  func reload(then report: @escaping (ReloadOutcome) -> Void) {
    reloader.reload(allowEmpty: false, then: report)
  }

  func endIsAsked() { ending.signalHasCome() }

  func log(_ priority: DaemonLog.Priority, _ text: String) { services.log(priority, text) }
}
