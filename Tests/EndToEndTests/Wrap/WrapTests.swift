import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("dormouse wrap") struct WrapTests {
  @Test(
    "A wrapped helper hibernates and answers the next request with its memory intact",
    arguments: Nightly.one(of: Setting.available))
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

  @Test(.enabled(if: TestMachine.hasCgroups && TestMachine.isRoot, "userfaultfd takes root here"))
  func `A wrapper resumes lazily if its policy says so, without a pager process`() throws {
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
      #expect(resume == "lazily (hibernate.resume is lazy)", "\(host.diagnostics)")
    }
    let names = children(of: host.pid).compactMap { try? readText("/proc/\($0)/cmdline") }
    #expect(!names.contains { $0.contains("\0pager") }, "\(names)")
  }

  @Test(
    "A wrapper ends with the exit code or signal of its program, awake or hibernated",
    arguments: Nightly.one(of: Setting.available))
  func ends(setting: Setting) throws {
    for sleeps in [false, true] {
      for signal in [SIGTERM, SIGINT, SIGQUIT] {
        let host = try WrapHost(setting: setting)
        try host.ask("fill", #"{"megabytes": 8}"#)
        // With its own handlers the helper would exit by itself instead of by the signal.
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

  @Test(
    "A wrapper passes signals on to its program, and wakes it for them",
    arguments: Nightly.one(of: Setting.available))
  func signals(setting: Setting) throws {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGWINCH] {
      // A program that was woken early several times stays awake for longer, so each signal has a
      // new one.
      let host = try WrapHost(setting: setting)
      try host.ask("fill", #"{"megabytes": 8}"#)
      try host.ask("catch", #"{"signal": \#(signal)}"#)
      for (sleeps, caught) in [(false, "[\(signal)]"), (true, "[\(signal), \(signal)]")] {
        if sleeps { try host.wait(toBe: "hibernated") }
        kill(host.pid, signal)
        #expect(try eventually { try host.ask("caught") == caught }, "\(signal), \(sleeps)")
      }
    }
  }

  @Test(arguments: Nightly.one(of: Setting.available))
  func `The end of a wrapped program's input wakes it`(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    try host.ask("fill", #"{"megabytes": 8}"#)
    try host.wait(toBe: "hibernated")
    host.closeInput()
    #expect(try host.end() == .exited(7))
  }

  @Test("The host sees the end of a wrapped program's output while the program continues to run")
  func endOfOutput() throws {
    let host = try WrapHost(["sh", "-c", "exec >&-; read line; exit 5"])
    #expect(try host.outputHasEnded())
    host.closeInput()
    #expect(try host.end() == .exited(5))
  }

  @Test func `A wrapped program isn't suspended while its answer waits in a full pipe`() throws {
    let host = try WrapHost()
    try host.send("shout", #"{"bytes": 1000000}"#)
    try host.wait(toBe: "foreground")
    let after = try host.status().secondsInState + 3
    let slept = try eventually(within: .seconds(60)) {
      let now = try host.status()
      return now.state != "foreground" || now.secondsInState > after
    }
    #expect(slept)
    #expect(try host.status().state == "foreground")
    #expect(try host.receive().utf8.count > 1_000_000)
    try host.wait(toBe: "hibernated")
  }

  @Test func `Five wrappers with one state directory work independently`() throws {
    let first = try WrapHost()
    let hosts = try [first] + (1..<5).map { _ in try WrapHost(scratch: first.scratch) }
    let sums = try hosts.enumerated().map { index, host in
      try host.ask("fill", #"{"megabytes": \#(5 + index)}"#)
    }
    #expect(Set(sums).count == hosts.count)
    for host in hosts { try host.wait(toBe: "hibernated") }
    for (host, sum) in zip(hosts, sums) { #expect(try host.ask("sum") == sum) }
  }

  /// `dormouse wrap` with these arguments, to its end.
  private func wrap(in scratch: Scratch, _ arguments: String...) throws -> Outcome {
    var run = Command.dormouse(["wrap"] + arguments)
    run.environment["XDG_STATE_HOME"] = scratch.path
    run.environment["XDG_RUNTIME_DIR"] = scratch.path
    return try run.run(in: scratch)
  }

  @Test("A wrapped command that is missing or not executable gives the exit codes of env(1)")
  func noCommand() throws {
    let scratch = try Scratch()
    let missing = try wrap(in: scratch, "--", "no-such-command")
    #expect(missing.code == 127 && missing.error.contains("no-such-command"))
    #expect(try wrap(in: scratch, "--", "/").code == 126)
    let script = try scratch.write("script", "#!/no/such/interpreter\n")
    chmod(script, 0o755)
    let broken = try wrap(in: scratch, "--", script)
    #expect(broken.code == 126 && broken.error.contains("interpreter"))
  }

  @Test("`wrap` takes options before the command as its own, and passes later ones to the command")
  func options() throws {
    let scratch = try Scratch()
    let help = try wrap(in: scratch, "--help")
    #expect(help.code == 0 && help.output.contains("--idle-after"))
    #expect(try wrap(in: scratch, "--idle", "5s", "--", "true").code == CommandExit.usage.rawValue)
    #expect(try wrap(in: scratch, "--idle-after", "5", "--", "echo", "a").output == "a\n")
    #expect(
      try wrap(in: scratch, "--idle-after", "5 parsecs", "--", "true").code
        == CommandExit.usage.rawValue)
    #expect(try wrap(in: scratch).code == CommandExit.usage.rawValue)
    #expect(try wrap(in: scratch, "echo", "--help", "--").output == "--help --\n")
    #expect(
      try wrap(in: scratch, "--idle-after", "5s", "--", "echo", "--idle-after").output
        == "--idle-after\n")
  }

  @Test("`wrap` runs the command without sleep if its state directory can't be used")
  func unmanaged() throws {
    let scratch = try Scratch()
    let run = Command.dormouse(["wrap", "--state-directory", "/proc/nowhere", "--", "echo", "here"])
    let outcome = try run.run(in: scratch)
    #expect(outcome.code == 0 && outcome.output == "here\n")
    #expect(outcome.error.contains("runs without sleep"))
    // 37 is PR_GET_CHILD_SUBREAPER.
    let program = """
      import ctypes, resource
      flag = ctypes.c_int(-1)
      ctypes.CDLL(None).prctl(37, ctypes.byref(flag), 0, 0, 0)
      print(flag.value, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
      """
    let python = ["python3", "-c", program]
    let bare = try Command(arguments: python).run(in: scratch)
    let wrapped = try Command.dormouse(
      ["wrap", "--state-directory", "/proc/nowhere", "--"] + python
    ).run(in: scratch)
    #expect(wrapped.output == bare.output && bare.output.hasPrefix("0 "), "\(wrapped) \(bare)")
  }

  @Test("`wrap` takes relative paths from the directory in which it was started")
  func relativePaths() throws {
    let daemon = try TestDaemon("")
    let scratch = daemon.scratch
    var command = Command.dormouse(
      ["wrap", "--state-directory", "wrapped", "--socket", "./control.sock", "--name", "near"]
        + ["--", "sh", "-c", "echo here; exec sleep 690"])
    command.directory = scratch.path
    let (output, error) = (scratch.uniquePath("out"), scratch.uniquePath("err"))
    let process = try command.start(output: output, error: error)
    #expect(try eventually { try readText(output) == "here\n" })
    let name = "near-\(process.pid)"
    #expect(try eventually { try daemon.done("ps", "--names").contains(name) })
    #expect(try daemon.done("status", name).contains(name))
    #expect(try daemon.verb("stop", name).code == 0)
    try process.wait(.seconds(60))
    #expect(try !readText(error).contains("runs without sleep"))
  }

  @Test(
    "On a terminal a wrapped program has that terminal, in the wrapper's session and process group")
  func terminal() throws {
    let scratch = try Scratch()
    let program = """
      import os, pty, sys
      sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
      """
    let facts = """
      import os, sys
      same = os.getsid(0) == os.getsid(os.getppid()) and os.getpgrp() == os.getpgid(os.getppid())
      front = os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR)) == os.getpgrp()
      sys.exit(4 if same and front and os.ttyname(0) == os.ttyname(1) else 5)
      """
    var run = Command(
      arguments: [
        TestMachine.python, "-c", program, TestMachine.executable, "wrap", "--",
        TestMachine.python, "-c", facts,
      ])
    run.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
    run.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
    let outcome = try run.run(in: scratch)
    #expect(outcome.code == 4 && outcome.output.isEmpty, "\(outcome)")
  }

  @Test(
    "A wrapped program gets arguments, environment, directory and descriptors like an unwrapped one"
  )
  func inherits() throws {
    let command = WrapHost.server + ["--an=argument", "", "with blanks"]
    let host = try WrapHost(command)
    let wrapped = try host.ask("facts")
    #expect(wrapped.contains(Self.hex("MARK=a mark")))
    #expect(wrapped.contains(Self.hex("--an=argument\0\0with blanks\0")))
    #expect(!wrapped.contains(Self.hex("DORMOUSE_WORKER")))
    #expect(wrapped.contains(#""directory": "\#(host.scratch.path)""#))
    // Descriptors 0, 1 and 2, and the one with which it lists them.
    #expect(wrapped.contains(#""descriptors": {"0": "pipe"#))
  }

  private static func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
