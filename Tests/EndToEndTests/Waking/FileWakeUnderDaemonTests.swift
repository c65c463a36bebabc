import Glibc
import Linux
import TestSupport
import Testing

/// Programs that wait for files: dev servers with watchers, readers of FIFOs.
@Suite("Sleeping workers that wait for files") struct FileWakeUnderDaemonTests {
  private static func configuration(_ script: String) -> String {
    """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, min_footprint: 0B }
    workers:
      watch:
        command: [\(TestMachine.python), -u, "\(script)"]
        readiness: { log_line: ready }

    """
  }

  /// It prints a line just before it waits; one that is stopped between the two waits for nothing
  /// yet.
  private static func waitUntilItWaits(_ daemon: TestDaemon) throws {
    let pid = try #require(try daemon.worker("watch").pid)
    guard try eventually({ try ProcessStat.read(pid).state == .sleeping }) else {
      throw TestFailure("it never waits")
    }
  }

  private static func script(_ text: String, in scratch: Scratch) throws -> String {
    let path = "\(scratch.path)/worker.py"
    try Descriptor.open(path, O_CREAT | O_WRONLY, mode: 0o644).writeAll(text)
    return path
  }

  @Test(
    "Data that is written to a FIFO wakes a worker that waits to open it, and isn't lost",
    arguments: Nightly.oneOfEach(
      ["suspend", "hibernate"].map { verb in Setting.ofTestUser.map { ($0, verb) } }))
  func fifo(setting: Setting, verb: String) throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/pipe"
    #expect(mkfifo(path, 0o666) == 0)
    let script = try Self.script(
      """
      print('ready')
      while True:
          with open('\(path)') as pipe: print('got', pipe.read().strip())
      """, in: scratch)
    let daemon = try TestDaemon(Self.configuration(script), setting: setting)
    try daemon.wait("watch", toBe: "foreground")
    for word in ["first", "second"] {
      try Self.waitUntilItWaits(daemon)
      try daemon.done(verb, "watch")
      try daemon.expectSleep("watch", verb == "suspend" ? "suspended" : "hibernated")
      // `echo word > pipe` opens, writes and closes before the worker runs.
      let shell = Command(arguments: ["sh", "-c", "echo \(word) > \(path)"])
      #expect(try shell.run(in: scratch).code == 0)
      #expect(
        try eventually { try daemon.done("logs", "watch").contains("got \(word)") },
        "\(daemon.logText)")
    }
    try daemon.waitForLogText("the opening of the other end of \(path)")
  }

  @Test("`explain` lists what a sleeping worker waits for and can't be woken by")
  func unwatched() throws {
    let scratch = try Scratch()
    let lock = "\(scratch.path)/lock"
    let held = try Descriptor.open(lock, O_CREAT | O_RDWR, mode: 0o644)
    #expect(flock(held.raw, LOCK_EX) == 0)
    let script = try Self.script(
      "import fcntl\nprint('ready')\nfcntl.flock(open('\(lock)'), fcntl.LOCK_EX)\n", in: scratch)
    let daemon = try TestDaemon(Self.configuration(script))
    try daemon.wait("watch", toBe: "foreground")
    try Self.waitUntilItWaits(daemon)
    try daemon.done("suspend", "watch")
    try daemon.expectSleep("watch", "suspended")
    let text = try daemon.done("explain", "watch")
    #expect(text.contains("these don't wake it: the release of a file lock"), "\(text)")
  }
}
