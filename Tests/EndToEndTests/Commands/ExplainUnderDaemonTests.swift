import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Explanations by a daemon") struct ExplainTests {
  private static let configuration = """
    policy_overrides: { background: { suspend_after: 1h } }
    workers:
      calm: { command: [sleep, "1000"] }
      busy: { command: [sleep, "1000"], importance: 50 }
    """

  @Test(
    "`explain` reports a worker's reason, its obstacles and its next state, as text and as JSON")
  func explain() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.done("suspend", "calm")
    let text = try daemon.done("explain", "calm")
    #expect(text.contains("calm: suspended for"), "\(text)")
    #expect(text.contains(": suspended on request"), "\(text)")
    #expect(text.contains("hibernate.min_footprint"), "\(text)")
    #expect(text.contains("`dormouse wake calm`"), "\(text)")
    let report = try daemon.json(ExplanationReport.self, "explain", "calm")
    #expect(report.next == "hibernated")
    #expect(
      report.obstacles.contains { $0.key == "hibernate.min_footprint" && $0.limit == 1 << 20 })
    #expect(try daemon.verb("explain", "ghost").code == 3)
    for wrong in [[], ["--savings", "--next"], ["--savings", "calm"]] {
      #expect(try daemon.enter(["explain"] + wrong).code == 64, "\(wrong)")
    }
  }

  @Test("A worker that holds a file lock isn't suspended before it releases the lock")
  func locks() throws {
    let scratch = try Scratch()
    let script = try scratch.write(
      "locker.py",
      """
      import fcntl, os, signal, time
      held = open("\(scratch.path)/lock", "w")
      signal.signal(signal.SIGUSR2, lambda *_: fcntl.flock(held, fcntl.LOCK_UN))
      fcntl.flock(held, fcntl.LOCK_EX)
      # Not one long sleep: Python would handle a signal that comes just before it only afterwards.
      while True: time.sleep(0.2)
      """)
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { safe_point: { file_locks: 1h } } }
      workers:
        locker: { command: [\(TestMachine.python), \(script)] }
      """)
    try daemon.wait("locker", toBe: "foreground")
    let pid = try #require(try daemon.worker("locker").pid)
    let locked = try eventually { FileLocks.held(by: [pid]) == 1 }
    #expect(locked)
    try daemon.done("background", "locker")
    var client = try ControlClient(connectingTo: daemon.socket, isNamed: true)
    let asked = try client.send(.suspend, worker: "locker")
    let waits = try eventually {
      try daemon.done("explain", "locker").contains("holds a file lock")
    }
    #expect(waits)
    #expect(try daemon.worker("locker").state == "background")
    #expect(kill(pid, SIGUSR2) == 0)
    let answer = try client.response(to: asked, timeout: .seconds(60))
    #expect(answer.result == .done, "\(answer.text); the daemon: \(daemon.logText)")
    #expect(try daemon.worker("locker").state == "suspended")
  }
}
