import Glibc
import Linux
import Testing

@testable import Daemon

@Suite("Signals to the daemon") struct DaemonSignalsTests {
  private final class Host: SignalHost {
    private(set) var calls: [String] = []
    private(set) var lines: [String] = []
    private var reports: [(ReloadOutcome) -> Void] = []

    func reapChildren() { calls.append("reap") }
    func reload(then report: @escaping (ReloadOutcome) -> Void) {
      calls.append("reload")
      reports.append(report)
    }
    func endIsAsked() { calls.append("end") }
    func log(_ priority: DaemonLog.Priority, _ text: String) {
      lines.append("\(priority): \(text)")
    }

    func hasReloaded(_ outcome: ReloadOutcome) { reports.removeFirst()(outcome) }
  }

  private let host = Host()
  private let signals: DaemonSignals

  init() throws { signals = DaemonSignals(loop: try EventLoop(), host: host) }

  @Test(
    "SIGTERM and SIGINT ask for the end, SIGCHLD has children reaped, SIGHUP reads the configuration",
    arguments: [(SIGTERM, "end"), (SIGINT, "end"), (SIGCHLD, "reap"), (SIGHUP, "reload")])
  func meaning(signal: Int32, call: String) {
    signals.handle(signal)
    #expect(host.calls == [call])
  }

  @Test("The outcome of a reload that a signal asked for is logged, a failure as an error")
  func reload() {
    signals.handle(SIGHUP)
    signals.handle(SIGHUP)
    #expect(host.lines.isEmpty)
    host.hasReloaded((true, "web added"))
    host.hasReloaded((false, "nothing changed: the configuration has errors"))
    #expect(
      host.lines == [
        "notice: reload: web added",
        "error: reload: nothing changed: the configuration has errors",
      ])
  }

  @Test("Each signal counts: the second SIGTERM reaches the daemon's end, too")
  func twice() {
    signals.handle(SIGTERM)
    signals.handle(SIGTERM)
    #expect(host.calls == ["end", "end"])
  }
}
