import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers that misbehave") struct MisbehaviourTests {
  /// Short times only for what a worker isn't to do in time: a busy machine may keep it from
  /// anything else.
  private static func policy(grace: String = "60s", launch: String = "60s") -> String {
    """
    policy_overrides:
      background: { suspend_after: 1h, shed_deadline: 300ms }
      hibernate: { after: never, cooldown: 0s }
      terminate: { grace: \(grace) }
      watchdog: { launch: \(launch) }
    workers:

    """
  }

  @Test func `The launch watchdog terminates a worker that never becomes ready`() throws {
    let daemon = try TestDaemon(
      Self.policy(launch: "500ms")
        + "  mute: { command: sleep 630, autostart: false, readiness: { notify: true } }")
    let outcome = try daemon.verb("start", "mute")
    #expect(outcome.code == 1)
    #expect(
      outcome.error == "dormouse: mute was not ready within 500 ms: it is terminated\n")
    try daemon.wait("mute", toBe: "terminated")
  }

  @Test(
    "A worker that ignores SIGTERM is killed after the grace, awake or asleep",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func ignoresTermination(setting: Setting) throws {
    let daemon = try TestDaemon(
      Self.policy(grace: "300ms") + """
          deaf: { command: [sh, -c, "trap '' TERM; echo set; while :; do sleep 0.1; done"],
                  readiness: { log_line: set } }
        """, setting: setting)
    for state in ["foreground", "background", "suspend"] {
      try daemon.done("start", "deaf")
      try daemon.done(state, "deaf")
      #expect(try daemon.done("stop", "deaf") == "deaf has ended\n")
      #expect(try daemon.worker("deaf").lastExit?.text == "ended by SIGKILL")
    }
    #expect(try eventually { try daemon.zombies().isEmpty })
  }

  @Test(arguments: Nightly.one(of: Setting.ofTestUser))
  func `A worker that stops itself can be suspended, woken and ended`(setting: Setting) throws {
    let daemon = try TestDaemon(
      Self.policy() + #"""
          stopper: { command: [sh, -c, "kill -STOP $$; echo on; sleep 631"] }
        """#, setting: setting)
    try daemon.wait("stopper", toBe: "foreground")
    try daemon.done("suspend", "stopper")
    try daemon.done("wake", "stopper")
    try daemon.done("suspend", "stopper")
    try daemon.done("stop", "stopper")
    #expect(try daemon.worker("stopper").lastExit?.text == "ended by SIGTERM")
  }

  @Test(
    "A worker's child that ignores SIGTERM is killed when the worker is stopped or terminated",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func leavesChild(setting: Setting) throws {
    let scratch = try Scratch()
    let pidFile = "\(scratch.path)/pid"
    let daemon = try TestDaemon(
      Self.policy(grace: "300ms") + """
          parent:
            command: [sh, -c, "(trap '' TERM; echo $$ > /dev/null; while :; do sleep 0.1; done) &
              echo $! > \(pidFile); echo up; wait"]
            readiness: { log_line: up }
        """, setting: setting)
    for verb in ["stop", "terminate"] {
      try daemon.done("start", "parent")
      let child = try #require(Int32(try readText(pidFile).split(separator: "\n").first ?? ""))
      #expect(!hasEnded(child))
      try daemon.done(verb, "parent")
      #expect(try eventually { hasEnded(child) })
    }
    #expect(try eventually { try daemon.zombies().isEmpty })
  }

  @Test(
    "A shell's child gets the whole grace to save its work, although the shell itself ends at once",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func savesSlowly(setting: Setting) throws {
    let scratch = try Scratch()
    let saved = "\(scratch.path)/saved"
    let script = try scratch.write(
      "slow.py",
      """
      import pathlib, signal, sys, time
      def end(*_):
        time.sleep(0.4)
        pathlib.Path(sys.argv[1]).write_text("saved")
        sys.exit(0)
      signal.signal(signal.SIGTERM, end)
      print("up", flush=True)
      # Not pause(): a signal that comes just before it would wait for the next one.
      while True: time.sleep(0.2)
      """)
    let daemon = try TestDaemon(
      """
      policy_overrides: { terminate: { grace: 60s } }
      workers:
        shell:
          command: [sh, -c, "\(TestMachine.python) \(script) \(saved); exit 0"]
          readiness: { log_line: up }
      """, setting: setting)
    try daemon.wait("shell", toBe: "foreground")
    try daemon.done("stop", "shell")
    #expect((try? readText(saved)) == "saved", "\(daemon.logText)")
    #expect(try daemon.worker("shell").lastExit?.text == "ended by SIGTERM")
  }

  @Test(
    "A worker whose program name imitates the format of /proc/PID/stat is hibernated and woken",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func hostileName(setting: Setting) throws {
    let scratch = try Scratch()
    let program = "\(scratch.path)/x) R 1\n1 (y"
    #expect(
      try Command(arguments: ["cp", "/bin/sleep", program]).run(in: scratch).code == 0)
    let daemon = try TestDaemon(
      Self.policy() + "  good: { command: sleep 633 }", setting: setting)
    try daemon.done("run", "evil", "--", program, "634")
    try daemon.done("hibernate", "evil")
    try daemon.done("wake", "evil")
    #expect(try daemon.done("status", "evil").contains("x) R 1"))
    let lines = try daemon.done("ps").split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix("good ") || $0.hasPrefix("evil ") }.count == 2)
    #expect(!lines.contains { $0.hasPrefix("1 (y") }, "\(lines)")
    try daemon.done("stop", "evil")
  }
}
