import Glibc
import Linux
import TestSupport
import Testing

/// What a Jupyter server expects of its kernel: that it ends with the server, and that a signal to
/// its process group reaches its children. jupyter_client puts the server's pid into
/// `JPY_PARENT_PID`. A shell is the server here, and `stdio_server.py` the kernel.
@Suite("dormouse wrap, and Jupyter kernels") struct WrapKernelTests {
  /// The shell gives an asynchronous command /dev/null as its input, therefore the redirections.
  private static let server = [
    "sh", "-c", #"export JPY_PARENT_PID=$$; exec 3<&0; "$@" <&3 3<&- & wait"#, "sh",
  ]
  /// As in a process that a kernel started: the variable is inherited, and names another process.
  private static let kernelsChild = [
    "sh", "-c", #"export JPY_PARENT_PID=$PPID; exec 3<&0; "$@" <&3 3<&- & wait"#, "sh",
  ]

  /// The helper's pid, and the wrapper's.
  private static func pids(_ host: WrapHost) throws -> (kernel: Int32, wrapper: Int32) {
    let pids = try host.ask("pid").split { !$0.isNumber }.compactMap { Int32($0) }
    guard pids.count == 2 else { throw TestFailure("no pids: \(pids)") }
    return (pids[0], pids[1])
  }

  @Test(
    "A kernel whose server is killed ends together with its children, awake or hibernated",
    arguments: Nightly.one(of: Setting.available))
  func serversDeath(setting: Setting) throws {
    for idleAfter in ["1h", "500ms"] {
      let host = try WrapHost(
        options: ["--idle-after", idleAfter, "--hibernate-after", "100ms"], setting: setting,
        starter: Self.server)
      try host.ask("fill", #"{"megabytes": 8}"#)
      let child = try Int32(host.ask("child")) ?? 0
      let (kernel, wrapper) = try Self.pids(host)
      defer { kill(wrapper, SIGKILL) }
      if idleAfter != "1h" {
        #expect(try eventually { try readText(host.log).contains("→ hibernated") })
      }
      kill(host.pid, SIGKILL)
      _ = try host.end()
      #expect(
        try eventually { [kernel, wrapper, child].allSatisfy(hasEnded) }, "\(host.diagnostics)")
      #expect(try eventually { host.hasLeftNothing() })
      #expect(try readText(host.log).contains("the Jupyter server that started it has ended"))
    }
  }

  @Test("A helper that a kernel started outlives the end of its own caller until its input ends")
  func kernelsChildren() throws {
    let host = try WrapHost(options: ["--idle-after", "1h"], starter: Self.kernelsChild)
    let (helper, wrapper) = try Self.pids(host)
    defer { kill(wrapper, SIGKILL) }
    kill(host.pid, SIGKILL)
    _ = try host.end()
    // The helper answers after the wrapper has noticed the end of its caller.
    #expect(try eventually { try ProcessStat.read(wrapper).parent != host.pid })
    #expect(try host.ask("echo", #"{"text": "here"}"#) == #""here""#)
    #expect(!hasEnded(helper))
    host.closeInput()
    #expect(try eventually { hasEnded(helper) && hasEnded(wrapper) })
  }

  @Test(
    "A server's signal reaches the children of its kernel, awake or hibernated",
    arguments: ["foreground", "hibernated"])
  func signals(state: String) throws {
    let idleAfter = state == "foreground" ? "1h" : "500ms"
    let host = try WrapHost(
      options: ["--idle-after", idleAfter, "--hibernate-after", "100ms"], starter: Self.server)
    try host.ask("catch", #"{"signal": 15}"#)
    try host.ask("fill", #"{"megabytes": 8}"#)
    let child = try Int32(host.ask("child")) ?? 0
    let (kernel, wrapper) = try Self.pids(host)
    defer { kill(wrapper, SIGKILL) }
    if state == "hibernated" {
      #expect(try eventually { try readText(host.log).contains("→ hibernated") })
    }
    kill(wrapper, SIGTERM)
    #expect(try eventually { hasEnded(child) }, "\(host.diagnostics)")
    #expect(try eventually { try host.ask("caught") == "[15]" })
    #expect(!hasEnded(kernel))
    host.closeInput()
    #expect(try eventually { hasEnded(kernel) && hasEnded(wrapper) })
  }

  @Test(
    "A kernel whose server has closed its input at the start sleeps the first time without a wake")
  func endedInput() throws {
    // jupyter_client closes the pipe at once. `read` returns at its end.
    let server = [
      "sh", "-c", #"export JPY_PARENT_PID=$$; : | { read line; exec "$@"; }"#, "sh",
    ]
    let program = "import time; block = b'x' * 8_000_000; time.sleep(1000)"
    let host = try WrapHost([TestMachine.python, "-c", program], starter: server)
    // There is no log before the wrapper's start.
    let sleeps = try eventually {
      (try? readText(host.log))?.contains("→ hibernated") == true
    }
    #expect(sleeps, "\(host.diagnostics)")
    #expect(try readText(host.log).split(separator: "→ suspending").count == 2)
    kill(host.pid, SIGKILL)
    _ = try host.end()
    #expect(try eventually { host.hasLeftNothing() })
  }

  @Test("With --wake-for-timers a hibernated kernel wakes when its silent cell's wait is over")
  func silentCell() throws {
    let host = try WrapHost(options: WrapHost.hasty + ["--wake-for-timers", "3s"])
    try host.ask("fill", #"{"megabytes": 8}"#)
    // Nothing but the helper's own timer can end this wait.
    #expect(try host.ask("sleep", #"{"seconds": 10}"#) == #""slept""#)
    // The log is written on another thread.
    for message in ["→ hibernated", "woken by its own timer"] {
      #expect(try eventually { try readText(host.log).contains(message) }, "\(host.diagnostics)")
    }
  }
}
