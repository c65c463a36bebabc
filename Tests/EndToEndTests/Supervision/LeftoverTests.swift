import Glibc
import Linux
import TestSupport
import Testing

@Suite("Processes that no valid record describes") struct LeftoverTests {
  @Test(
    "A worker with a damaged record isn't started twice, and the error says which process to end",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func flippedBit(setting: Setting) throws {
    let daemon = try TestDaemon(
      "workers: { sleeper: { command: [sleep, '1000'], directory: / } }\n", setting: setting)
    try daemon.wait("sleeper", toBe: "foreground")
    let pid = try #require(try daemon.worker("sleeper").pid)
    defer { kill(pid, SIGKILL) }
    let path = "\(daemon.state)/workers/sleeper.worker"
    // The record is written on another thread.
    #expect(try eventually { access(path, F_OK) == 0 })
    try daemon.crash()
    var bytes = try readFile(path)
    let group = daemon.record("sleeper")["cgroup"]
    bytes[bytes.count / 2] ^= 1
    try Descriptor.open(path, O_WRONLY | O_TRUNC).writeAll(String(decoding: bytes, as: UTF8.self))

    try daemon.start()
    try daemon.waitForLogText("sleeper.worker is damaged")
    try daemon.waitForLogText("1 process of an earlier instance still run")
    try daemon.wait("sleeper", toBe: "terminated")
    let refused = try daemon.verb("start", "sleeper")
    #expect(refused.code != 0)
    #expect(refused.error.contains("kill -9 \(pid)"), "\(refused)")
    #expect(!hasEnded(pid))
    // After the process that the error names has ended, the worker starts.
    kill(pid, SIGKILL)
    #expect(try eventually { hasEnded(pid) })
    try daemon.done("start", "sleeper")
    #expect(try daemon.worker("sleeper").pid != pid)
    if let group {
      #expect(try eventually { daemon.record("sleeper")["cgroup"] == group })
    }
  }

  @Test("A record that is a FIFO or a directory doesn't keep the daemon from starting")
  func strangeFiles() throws {
    let daemon = try TestDaemon("workers: { a: { command: [sleep, '1000'] } }\n", starts: false)
    try daemon.start()
    try daemon.wait("a", toBe: "foreground")
    try daemon.done("stop", "a")
    try daemon.crash()
    #expect(mkfifo("\(daemon.state)/workers/b.worker", 0o600) == 0)
    #expect(mkdir("\(daemon.state)/workers/c.worker", 0o700) == 0)
    try daemon.start()
    try daemon.waitForLogText("b.worker")
    try daemon.waitForLogText("c.worker")
  }
}

@Suite("Core files of the daemon") struct CoreFileTests {
  private func limit(_ text: String) -> [Substring]? {
    text.split(separator: "\n").first { $0.hasPrefix("Max core file size") }?
      .split(separator: " ").suffix(3)
  }

  @Test(
    "The daemon writes no core file, and its workers have the core limits that it was started with")
  func coreFiles() throws {
    var before = rlimit()
    getrlimit(Int32(RLIMIT_CORE.rawValue), &before)
    let softLimit = before.rlim_max == 0 ? "0" : "4096"
    let daemon = try TestDaemon(
      """
      workers:
        looker:
          command: [sh, -c, "grep core /proc/self/limits; cat /proc/self/coredump_filter; exec \
      sleep 1000"]
          directory: /

      """,
      wrapper: [
        "/usr/bin/env", "python3", "-c",
        """
        import os, resource, sys
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (\(softLimit), hard))
        open("/proc/self/coredump_filter", "w").write("0x23")
        os.execv(sys.argv[1], sys.argv[1:])
        """,
      ])
    try daemon.wait("looker", toBe: "foreground")
    let limits = try readText("/proc/\(daemon.pid)/limits")
    #expect(limit(limits)?.first == "0")
    #expect(try readText("/proc/\(daemon.pid)/coredump_filter") == "00000000\n")
    try daemon.waitForWorkerLog("looker", "00000023")
    let seen = daemon.workerLog("looker")
    #expect(limit(seen)?.first.map(String.init) == softLimit, "\(seen)")
  }
}

@Suite("Text from workers, at a terminal") struct HostileOutputTests {
  @Test(
    "`logs` escapes control characters at a terminal, and writes every byte unchanged into a pipe")
  func logs() throws {
    let daemon = try TestDaemon(
      #"""
      workers:
        loud:
          command: [sh, -c, "printf \#
      'a\\033]0;owned\\007b\\302\\233c\\342\\200\\256d\\033[31mred\\n'; exec sleep 1000"]
          directory: /

      """#)
    try daemon.wait("loud", toBe: "foreground")
    try daemon.waitForWorkerLog("loud", "red\n")
    #expect(
      try daemon.done("logs", "loud") == "a\u{1B}]0;owned\u{7}b\u{9B}c\u{202E}d\u{1B}[31mred\n")
    var command = Command(arguments: [
      TestMachine.python, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))",
      TestMachine.executable, "logs", "--socket", daemon.socket, "loud",
    ])
    command.directory = daemon.scratch.path
    let shown = try command.run(in: daemon.scratch).output.replacing("\r\n", with: "\n")
    #expect(
      shown == "a\\u{1b}]0;owned\\u{7}b\\u{9b}c\\u{202e}d\u{1B}[31mred\n\u{1B}[0m", "\(shown)")
  }

  @Test(.enabled(if: TestMachine.canBecomeNobody, "only root can be two users"))
  func `Root sends nothing to another user's daemon that only the environment names`() throws {
    let daemon = try TestDaemon("workers: {}\n", setting: .ordinaryUser)
    var command = Command.dormouse(["run", "stolen", "--", "/bin/sleep", "1000"])
    command.environment["DORMOUSE_CONTROL_SOCKET"] = daemon.socket
    command.directory = "/"
    let outcome = try command.run(in: daemon.scratch)
    #expect(outcome.code != 0)
    #expect(
      outcome.error.contains("belongs to user \(TestMachine.unprivilegedUser)"), "\(outcome)")
    #expect(try daemon.ask(.ps).workers?.isEmpty == true)
  }
}
