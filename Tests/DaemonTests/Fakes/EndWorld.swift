import Glibc
import Lifecycle
import Policy

@testable import Daemon

/// A run of a worker whose end happens as a test says: nothing is done before the test reports its outcome.
final class EndWorld: EndMechanics, EndHost {
  let timers: FakeTimers
  private(set) lazy var ending = WorkerEnding(timers: timers, mechanics: self, host: self)

  // MARK: mechanics

  var hasGroup = true
  /// What was begun, in order.
  private(set) var begun: [String] = []
  private(set) var woken: [(String?) -> Void] = []
  private(set) var kills: [(String?) -> Void] = []
  private(set) var looks: [(WhatIsLeft) -> Void] = []
  private(set) var clearings: [(Clearing) -> Void] = []
  private(set) var removals: [(String?) -> Void] = []
  private(set) var readings: [([String]?) -> Void] = []
  var status = ExitStatus.exited(0)

  init(_ timers: FakeTimers = FakeTimers()) { self.timers = timers }

  func ask(by signal: Int32) { begun.append("ask \(signal)") }

  func wake(askingBy signal: Int32?, then: @escaping (String?) -> Void) {
    begun.append(signal.map { "ask \($0) and wake" } ?? "wake")
    woken.append(then)
  }

  func kill(then: @escaping (String?) -> Void) {
    begun.append("kill")
    kills.append(then)
  }

  func lookForWhatIsLeft(then: @escaping (WhatIsLeft) -> Void) {
    begun.append("look")
    looks.append(then)
  }

  func clear(then: @escaping (Clearing) -> Void) {
    begun.append("clear")
    clearings.append(then)
  }

  func reap() -> ExitStatus {
    begun.append("reap")
    return status
  }

  func removeGroup(then: @escaping (String?) -> Void) {
    begun.append("remove group")
    removals.append(then)
  }

  func readLastLines(then: @escaping ([String]?) -> Void) {
    begun.append("read log")
    readings.append(then)
  }

  // MARK: host

  var stopSignal = SIGTERM
  var isMemoryUnverified = false
  var isActedOn = false
  var isTerminating = false
  var isExternal = false
  var isUnexpected = true
  /// It has connected to `DORMOUSE_WORKER_SOCKET`.
  var isConnected = false
  var hasStopCommand = false
  private(set) var stopCommands: [() -> Void] = []
  private(set) var announced: [() -> Void] = []
  private(set) var lines: [String] = []
  private(set) var rootEnds = 0
  private(set) var externalEnds = 0
  private(set) var leftBehind: [Int] = []
  private(set) var gone: [(status: ExitStatus, lastLines: [String]?)] = []

  func stopListening() { begun.append("stop listening") }
  func willBeAsked() { begun.append("drop offers") }

  func runStopCommand(then ask: @escaping () -> Void) -> Bool {
    if hasStopCommand { stopCommands.append(ask) }
    return hasStopCommand
  }

  func announceEnd(then ask: @escaping () -> Void) -> Bool {
    if isConnected { announced.append(ask) }
    return isConnected
  }

  func rootHasEnded() { rootEnds += 1 }
  func externalRootHasEnded() { externalEnds += 1 }
  func isReaped(_ status: ExitStatus, leavingBehind others: Int) { leftBehind.append(others) }
  func isGone(_ status: ExitStatus, lastLines: [String]?) { gone.append((status, lastLines)) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test says

  static let nothing = WhatIsLeft(isEmpty: true, others: 0)

  /// The root process has ended, and all that was left has been found.
  func endRoot(leaving left: WhatIsLeft = nothing) {
    ending.rootHasEnded()
    looked(left)
  }

  func looked(_ left: WhatIsLeft = nothing) { looks.last?(left) }
  func cleared(_ outcome: Clearing = Clearing()) { clearings.last?(outcome) }

  /// From what is left on, everything succeeds.
  func succeed(lastLines: [String]? = nil) {
    looked()
    cleared()
    removals.last?(nil)
    readings.last?(lastLines)
  }

  /// Nothing is due any more, and nothing that comes late changes anything.
  var isAtRest: Bool {
    let before = (begun.count, gone.count, lines.count)
    for then in woken + kills + removals { then(nil) }
    for then in readings { then(nil) }
    for then in looks { then(Self.nothing) }
    for then in clearings { then(Clearing()) }
    ending.rootHasEnded()
    ending.terminate()
    ending.kill()
    return timers.pending.isEmpty && before == (begun.count, gone.count, lines.count)
  }
}
