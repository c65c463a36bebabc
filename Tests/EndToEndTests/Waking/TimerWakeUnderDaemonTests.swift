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
      clock: { command: [\(Surroundings.python), -u, -c, "\(program)"], readiness: { log_line: set } }

    """
  }

  @Test(
    "A suspended or hibernated worker is woken when its own timer expires",
    arguments: [
      "time.sleep(3)", "select.epoll().poll(3)", "select.select([], [], [], 3)",
      "threading.Event().wait(3)",
    ])
  func wakes(waiting: String) throws {
    let program =
      "import time, select, threading; print('set'); \(waiting); print('rang'); time.sleep(900)"
    let daemon = try TestDaemon(Self.configuration(program, timers: "2s"))
    try daemon.wait("clock", toBe: "foreground")
    let pid = try #require(try daemon.worker("clock").pid)
    // It prints `set` just before it waits; a worker that is stopped between the two has no timer yet.
    guard try eventually({ try ProcessStat.read(pid).state == .sleeping }) else {
      throw TestFailure("it never waits")
    }
    try daemon.done("suspend", "clock")
    try daemon.done("hibernate", "clock")
    #expect(try eventually { try daemon.done("logs", "clock").contains("rang") }, "\(daemon.words)")
    try daemon.waitForWords("woken by its own timer")
    #expect(try daemon.worker("clock").pid == pid)
  }

  @Test(
    "A timer that started before the worker slept expires on time",
    arguments: [
      "select.epoll().poll(4)", "select.poll().poll(4000)", "select.select([], [], [], 4)",
      "threading.Event().wait(4)", "ctypes.CDLL(None).usleep(4000000)",
    ])
  func inTime(waiting: String) throws {
    let program =
      "import time, select, threading, ctypes; print('set'); t = time.monotonic(); \(waiting); "
      + "print('rang', round((time.monotonic() - t) * 1000)); time.sleep(900)"
    let daemon = try TestDaemon(Self.configuration(program, timers: "2s"))
    try daemon.wait("clock", toBe: "foreground")
    let pid = try #require(try daemon.worker("clock").pid)
    guard try eventually({ try ProcessStat.read(pid).state == .sleeping }) else {
      throw TestFailure("it never waits")
    }
    usleep(1_500_000)
    // Suspended and woken in between, so that the kernel restarts the call once more.
    try daemon.done("suspend", "clock")
    try daemon.done("wake", "clock")
    try daemon.done("hibernate", "clock")
    #expect(try eventually { try daemon.done("logs", "clock").contains("rang") }, "\(daemon.words)")
    let log = try daemon.done("logs", "clock")
    let took = try #require(log.split { $0 == " " || $0 == "\n" }.compactMap { Int($0) }.last)
    // A timer that began again when the worker slept would take at least 5.5 s.
    #expect(took >= 4000 && took < 5400, "\(took) ms of 4000: \(daemon.words)")
  }

  @Test("Timers shorter than background.wake_for_timers don't wake a worker")
  func ignored() throws {
    let program = "import select; print('set'); e = select.epoll()\\nwhile True: e.poll(0.2)"
    let daemon = try TestDaemon(Self.configuration(program, timers: "1m"))
    try daemon.wait("clock", toBe: "foreground")
    try daemon.done("hibernate", "clock")
    // Longer than many of its time-outs; nothing else could end this wait.
    let woke = try eventually(within: .seconds(2)) {
      try daemon.worker("clock").state != "hibernated"
    }
    #expect(!woke)
  }

  @Test(
    "A signal that is sent to a hibernated worker is delivered and wakes it",
    arguments: Setting.ofOwnUser)
  func signals(setting: Setting) throws {
    let program =
      "import signal, time; signal.signal(signal.SIGUSR1, lambda *a: print('heard')); print('set'); time.sleep(900)"
    let daemon = try TestDaemon(Self.configuration(program, timers: "never"), setting: setting)
    try daemon.wait("clock", toBe: "foreground")
    try daemon.done("hibernate", "clock")
    let pid = try #require(try daemon.worker("clock").pid)
    kill(pid, SIGUSR1)
    #expect(
      try eventually { try daemon.done("logs", "clock").contains("heard") }, "\(daemon.words)")
  }
}
