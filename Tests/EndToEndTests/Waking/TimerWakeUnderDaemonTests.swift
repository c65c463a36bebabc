import Glibc
import Linux
import TestSupport
import Testing

@Suite("Timers of sleeping workers") struct TimerWakeTests {
  private static func configuration(_ program: String, timers: String) -> String {
    """
    policy_overrides:
      background: { suspend_after: 1h, wake_for_timers: \(timers) }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B }
    workers:
      clock: { command: [\(TestMachine.python), -u, -c, "\(program)"], readiness: { log_line: set \
    } }

    """
  }

  /// HibernationTests has the other calls that wait for a time (`TimeoutTests`).
  @Test func `A timer that started before the worker slept expires on time`() throws {
    let program =
      "import time, select; print('set')\\nwhile True: t = time.monotonic(); "
      + "select.epoll().poll(4); print('rang', round((time.monotonic() - t) * 1000))"
    let daemon = try TestDaemon(Self.configuration(program, timers: "2s"))
    try daemon.wait("clock", toBe: "foreground")
    let pid = try #require(try daemon.worker("clock").pid)
    guard try eventually({ try ProcessStat.read(pid).state == .sleeping }) else {
      throw TestFailure("it never waits")
    }
    // A timer that began again when the worker slept would take at least 5.5 s, each time. A
    // machine that holds up the daemon makes only some of them late.
    var all: [Int] = []
    for _ in 0..<10 where all.last.map({ $0 >= 5400 }) ?? true {
      usleep(1_500_000)
      // Suspended and woken in between, so that the kernel restarts the call once more.
      try daemon.done("suspend", "clock")
      try daemon.done("wake", "clock")
      try daemon.done("hibernate", "clock")
      let count = all.count
      _ = try eventually(within: .seconds(15)) {
        all = try daemon.done("logs", "clock", "-n", "all").split { $0 == " " || $0 == "\n" }
          .compactMap { Int($0) }
        return all.count > count
      }
      // It may have been stopped between two waits, where it has no timer.
      try daemon.done("wake", "clock")
    }
    #expect(
      !all.isEmpty && all.allSatisfy { $0 >= 4000 } && (all.last ?? 0) < 5400,
      "\(all) ms of 4000: \(daemon.logText)")
  }

  @Test("A poller that activity puts to sleep keeps polling, each time woken by its own timer")
  func poller() throws {
    let scratch = try Scratch()
    let polls = "\(scratch.path)/polls"
    // mkdir(2) isn't a write, and the poll is far below cpu_below: nothing but the timer shows this
    // work.
    let program =
      "import os, time; print('set'); os.mkdir('\(polls)')\\n"
      + "for n in range(10**6): os.mkdir('\(polls)/%d' % n); time.sleep(4)"
    let daemon = try TestDaemon(
      """
      policy_overrides:
        foreground: { mode: activity, max: unlimited, idle_after: 1s, cpu_below: 90% }
        background: { suspend_after: 500ms, wake_for_timers: 2s }
        hibernate: { after: 0s, cooldown: 0s, min_footprint: 0B, only_if_faster_than_relaunch: \
      false }
      workers:
        poller: { command: [\(TestMachine.python), -u, -c, "\(program)"], readiness: { log_line: \
      set } }

      """)
    let count = { (0..<1000).first { access("\(polls)/\($0)", F_OK) != 0 } ?? 1000 }
    try daemon.wait("poller", toBe: "hibernated", within: .seconds(60))
    let before = count()
    #expect(try eventually(within: .seconds(120)) { count() >= before + 3 }, "\(daemon.logText)")
    #expect(daemon.logText.contains("woken by its own timer"), "\(daemon.logText)")
  }

  @Test(
    "A signal that is sent to a hibernated worker is delivered and wakes it",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func signals(setting: Setting) throws {
    let program =
      "import signal, time; signal.signal(signal.SIGUSR1, lambda *a: print('heard'))\\n"
      + "print('set')\\nwhile True: time.sleep(0.2)"
    let daemon = try TestDaemon(Self.configuration(program, timers: "never"), setting: setting)
    try daemon.wait("clock", toBe: "foreground")
    try daemon.done("hibernate", "clock")
    let pid = try #require(try daemon.worker("clock").pid)
    kill(pid, SIGUSR1)
    #expect(
      try eventually { try daemon.done("logs", "clock").contains("heard") }, "\(daemon.logText)")
  }
}
