import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("dormouse wrap") struct WrapTests {
  @Test("A helper hibernates, and answers from where it was", arguments: Setting.available)
  func sleeps(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    let sum = try host.ask("fill", #"{"megabytes": 12}"#)
    let pid = try host.serverPid()
    let awake = try host.anonymous(pid)
    for round in 1...3 {
      try host.wait(toBe: "hibernated")
      #expect(try host.anonymous(pid) < awake / 10)
      let text = String(repeating: "byte for byte \(round) ", count: 20_000)
      #expect(try host.ask("echo", #"{"text": "\#(text)"}"#) == "\"\(text)\"")
      #expect(try host.ask("sum") == sum)
      #expect(try host.serverPid() == pid)
    }
    try host.send("exit", #"{"code": 0}"#)
    #expect(try host.end() == .exited(0))
    #expect(host.hasLeftNothing())
  }

  @Test(
    "Its policy's way of resuming is followed, without a second process beside the wrapper",
    .enabled(if: Surroundings.hasCgroups && Surroundings.isRoot, "userfaultfd takes root here"))
  func lazy() throws {
    let scratch = try Scratch()
    let policy = try scratch.write(
      "hot.yaml",
      """
      name: hot
      foreground: { mode: activity, max: unlimited, idle_after: 500ms }
      background: { suspend_after: 0s }
      hibernate: { resume: lazy, after: 100ms, cooldown: 0s, max_footprint: unlimited }

      """)
    let host = try WrapHost(options: ["--policy", policy], setting: .frozen)
    let sum = try host.ask("fill", #"{"megabytes": 12}"#)
    for _ in 1...3 {
      try host.wait(toBe: "hibernated")
      #expect(try host.ask("sum") == sum)
      let resume = try host.status().resume?.text
      #expect(resume == "lazily (hibernate.resume is lazy)", "\(host.words)")
    }
    let names = children(of: host.pid).compactMap { try? readText("/proc/\($0)/cmdline") }
    #expect(!names.contains { $0.contains("\0pager") }, "\(names)")
  }

  @Test("Its end is its wrapper's, awake and hibernated", arguments: Setting.available)
  func ends(setting: Setting) throws {
    for sleeps in [false, true] {
      for signal in [SIGTERM, SIGINT, SIGQUIT] {
        let host = try WrapHost(setting: setting)
        try host.ask("fill", #"{"megabytes": 8}"#)
        // Its own would make it exit by itself.
        try host.ask("default", #"{"signal": \#(signal)}"#)
        if sleeps { try host.wait(toBe: "hibernated") }
        kill(host.pid, signal)
        #expect(try host.end() == .signaled(signal), "\(signal), \(sleeps)")
        #expect(host.hasLeftNothing())
      }
      let host = try WrapHost(setting: setting)
      try host.ask("fill", #"{"megabytes": 8}"#)
      if sleeps { try host.wait(toBe: "hibernated") }
      try host.send("exit", #"{"code": 42}"#)
      #expect(try host.end() == .exited(42))
    }
  }

  @Test("Signals reach it, and wake it where it sleeps", arguments: Setting.available)
  func signals(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    try host.ask("fill", #"{"megabytes": 8}"#)
    var expected: [Int32] = []
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH] {
      try host.ask("catch", #"{"signal": \#(signal)}"#)
      for sleeps in [false, true] {
        if sleeps { try host.wait(toBe: "hibernated") }
        kill(host.pid, signal)
        expected.append(signal)
        let words = "[\(expected.map { "\($0)" }.joined(separator: ", "))]"
        #expect(try eventually { try host.ask("caught") == words }, "\(signal), \(sleeps)")
      }
    }
  }

  @Test("The end of its input wakes it", arguments: Setting.available)
  func endOfInput(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    try host.ask("fill", #"{"megabytes": 8}"#)
    try host.wait(toBe: "hibernated")
    host.closeInput()
    #expect(try host.end() == .exited(7))
  }

  @Test("The end of its output is seen while it goes on")
  func endOfOutput() throws {
    let host = try WrapHost(["sh", "-c", "exec >&-; read line; exit 5"])
    #expect(try host.outputHasEnded())
    host.closeInput()
    #expect(try host.end() == .exited(5))
  }

  @Test("While its answer is stuck half-way it isn't put to sleep")
  func fullOutput() throws {
    let host = try WrapHost()
    try host.send("shout", #"{"bytes": 1000000}"#)
    try host.wait(toBe: "foreground")
    let after = try host.status().secondsInState + 3
    let slept = try eventually(within: .seconds(30)) {
      let now = try host.status()
      return now.state != "foreground" || now.secondsInState > after
    }
    #expect(slept)
    #expect(try host.status().state == "foreground")
    #expect(try host.receive().utf8.count > 1_000_000)
    try host.wait(toBe: "hibernated")
  }

  @Test("Many at a time share nothing")
  func many() throws {
    let first = try WrapHost()
    let hosts = try [first] + (1..<5).map { _ in try WrapHost(scratch: first.scratch) }
    let sums = try hosts.enumerated().map { index, host in
      try host.ask("fill", #"{"megabytes": \#(5 + index)}"#)
    }
    #expect(Set(sums).count == hosts.count)
    for host in hosts { try host.wait(toBe: "hibernated") }
    for (host, sum) in zip(hosts, sums) { #expect(try host.ask("sum") == sum) }
  }

  @Test("A command that can't be had is told as env(1) tells it")
  func noCommand() throws {
    let scratch = try Scratch()
    func wrap(_ command: String) throws -> Outcome {
      var run = Command(arguments: [Surroundings.executable, "wrap", "--", command])
      run.environment["XDG_STATE_HOME"] = scratch.path
      run.environment["XDG_RUNTIME_DIR"] = scratch.path
      return try run.run(in: scratch)
    }
    let missing = try wrap("no-such-command")
    #expect(missing.code == 127 && missing.error.contains("no-such-command"))
    #expect(try wrap("/").code == 126)
    let script = try scratch.write("script", "#!/no/such/interpreter\n")
    chmod(script, 0o755)
    let broken = try wrap(script)
    #expect(broken.code == 126 && broken.error.contains("interpreter"))
  }

  @Test("Options are its own before the command, and the command's behind it")
  func options() throws {
    let scratch = try Scratch()
    func wrap(_ words: String...) throws -> Outcome {
      var run = Command(arguments: [Surroundings.executable, "wrap"] + words)
      run.environment["XDG_STATE_HOME"] = scratch.path
      run.environment["XDG_RUNTIME_DIR"] = scratch.path
      return try run.run(in: scratch)
    }
    let help = try wrap("--help")
    #expect(help.code == 0 && help.output.contains("--idle-after"))
    #expect(try wrap("--idle", "5s", "--", "true").code == CommandExit.usage.rawValue)
    #expect(try wrap("--idle-after", "5", "--", "echo", "a").output == "a\n")
    #expect(
      try wrap("--idle-after", "5 parsecs", "--", "true").code == CommandExit.usage.rawValue)
    #expect(try wrap().code == CommandExit.usage.rawValue)
    #expect(try wrap("echo", "--help", "--").output == "--help --\n")
    #expect(try wrap("--idle-after", "5s", "--", "echo", "--idle-after").output == "--idle-after\n")
  }

  @Test("Where nothing can be kept the command runs all the same")
  func unmanaged() throws {
    let scratch = try Scratch()
    let run = Command(
      arguments: [
        Surroundings.executable, "wrap", "--state-directory", "/proc/nowhere", "--", "echo", "here",
      ])
    let outcome = try run.run(in: scratch)
    #expect(outcome.code == 0 && outcome.output == "here\n")
    #expect(outcome.error.contains("runs without sleep"))
  }

  @Test("On a terminal the command is executed as it is")
  func terminal() throws {
    let scratch = try Scratch()
    let program = """
      import os, pty, sys
      sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
      """
    let run = Command(
      arguments: [
        Surroundings.python, "-c", program, Surroundings.executable, "wrap", "--", "sh", "-c",
        "tty && exit 4",
      ])
    let outcome = try run.run(in: scratch)
    #expect(outcome.code == 4 && outcome.output.contains("/dev/pts/"), "\(outcome)")
    #expect(outcome.output.contains("runs without sleep"))
  }

  @Test("It gets what it would have got without a wrapper")
  func inherits() throws {
    let command = WrapHost.server + ["--an=argument", "", "with blanks"]
    let host = try WrapHost(command)
    let wrapped = try host.ask("facts")
    #expect(wrapped.contains(Self.hex("MARK=a mark")))
    #expect(wrapped.contains(Self.hex("--an=argument\0\0with blanks\0")))
    #expect(!wrapped.contains(Self.hex("DORMOUSE_WORKER")))
    #expect(wrapped.contains(#""directory": "\#(host.scratch.path)""#))
    // 0, 1 and 2, and the one by which it looks.
    #expect(wrapped.contains(#""descriptors": {"0": "pipe"#))
  }

  private static func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
