import Glibc
import Linux
import TestSupport
import Testing

/// Sudden ends of the wrapper, its guardian and its caller.
@Suite("dormouse wrap, and deaths") struct WrapDeathTests {
  @Test(
    "A killed wrapper's helper ends too, whether it is awake, suspended or hibernated",
    arguments: Nightly.one(of: Setting.available))
  func killed(setting: Setting) throws {
    for state in ["foreground", "suspended", "hibernated"] {
      let options = [
        "--idle-after", state == "foreground" ? "1h" : "500ms", "--hibernate-after",
        state == "hibernated" ? "100ms" : "never",
      ]
      let host = try WrapHost(options: options, setting: setting)
      try host.ask("fill", #"{"megabytes": 8}"#)
      let pids = try [host.serverPid(), Int32(host.ask("child")) ?? 0, host.guardianPid()]
      try host.wait(toBe: state)
      kill(host.pid, SIGKILL)
      #expect(try host.end() == .signaled(SIGKILL))
      #expect(try eventually { pids.allSatisfy(hasEnded) }, "\(state)")
      #expect(host.hasLeftNothing())
    }
  }

  @Test(
    "The next wrapper ends the helper that a killed wrapper and its killed guardian left",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func killedWithItsGuardian(setting: Setting) throws {
    let host = try WrapHost(setting: setting)
    try host.ask("fill", #"{"megabytes": 8}"#)
    let server = try host.serverPid()
    let guardian = try host.guardianPid()
    try host.wait(toBe: "hibernated")
    kill(guardian, SIGKILL)
    #expect(try eventually { hasEnded(guardian) })
    kill(host.pid, SIGKILL)
    _ = try host.end()
    #expect(!hasEnded(server))
    let next = try WrapHost(setting: setting, scratch: host.scratch)
    try next.ask("pid")
    #expect(try eventually { hasEnded(server) })
    next.closeInput()
    #expect(try next.end() == .exited(7))
    #expect(next.hasLeftNothing())
  }

  @Test
  func `A process that has the reused pid of a killed wrapper's program isn't killed`() throws {
    let host = try WrapHost(options: ["--idle-after", "1h"])
    let server = try host.serverPid()
    let guardian = try host.guardianPid()
    let wrap = "\(host.state)/dormouse/wrap"
    let directory = try #require(try listDirectory(wrap, onlyDirectories: true).first)
    // Another thread than the one that starts the program writes its record.
    var record: String?
    #expect(
      try eventually {
        record = try? listDirectory("\(wrap)/\(directory)/workers").first {
          $0.hasSuffix(".worker")
        }
        return record != nil
      })
    kill(guardian, SIGKILL)
    #expect(try eventually { hasEnded(guardian) })
    kill(host.pid, SIGKILL)
    _ = try host.end()
    kill(server, SIGKILL)
    #expect(try eventually { hasEnded(server) })
    // The record simulates a reused pid: it names a process that started before the one that has
    // the number now.
    let stranger = try Command(arguments: ["sleep", "1000"]).start(
      output: host.scratch.uniquePath("out"), error: host.scratch.uniquePath("err"))
    defer {
      kill(stranger.pid, SIGKILL)
      _ = try? stranger.wait(.seconds(60))
    }
    #expect(try ProcessStat.read(stranger.pid).session == stranger.pid)
    let path = "\(wrap)/\(directory)/workers/\(try #require(record))"
    let text = recordText(
      try readText(path),
      setting: [
        "pid": "\(stranger.pid)", "session": "\(stranger.pid)",
        "start": "\(stranger.startTime - 1)",
      ])
    try Descriptor.open(path, O_WRONLY | O_TRUNC).writeAll(text)

    let next = try WrapHost(scratch: host.scratch)
    try next.ask("pid")
    #expect(access(path, F_OK) != 0)
    #expect(!hasEnded(stranger.pid))
    next.closeInput()
    #expect(try next.end() == .exited(7))
    #expect(next.hasLeftNothing())
  }

  @Test(
    "The end of a wrapper's caller wakes the helper, even if another process holds its input open")
  func callersDeath() throws {
    // The shell is the caller. It would give an asynchronous command /dev/null as its input,
    // therefore the redirections. The test holds the pipe.
    let host = try WrapHost(starter: ["sh", "-c", #"exec 3<&0; "$@" <&3 3<&- & wait"#, "sh"])
    try host.ask("fill", #"{"megabytes": 8}"#)
    let pids = try host.ask("pid").split { !$0.isNumber }.compactMap { Int32($0) }
    let (server, wrapper) = (pids[0], pids[1])
    defer { kill(wrapper, SIGKILL) }
    #expect(try eventually { try readText(host.log).contains("→ hibernated") })
    kill(host.pid, SIGKILL)
    _ = try host.end()
    let message = "the end of the process that started it"
    #expect(try eventually { try readText(host.log).contains(message) })
    #expect(!hasEnded(server))
    // The wrapper wakes, finds nothing to do, and ends only at the end of its input.
    host.closeInput()
    #expect(try eventually { hasEnded(server) && hasEnded(wrapper) })
    #expect(try eventually { host.hasLeftNothing() })
  }

  @Test(
    "A wrapper with a parent-death signal ends with its caller, together with its helper",
    .enabled(if: access("/usr/bin/setpriv", X_OK) == 0, "setpriv isn't installed"))
  func parentDeathSignal() throws {
    let host = try WrapHost(
      starter: ["sh", "-c", #"exec 3<&0; setpriv --pdeathsig KILL "$@" <&3 3<&- & wait"#, "sh"])
    try host.ask("fill", #"{"megabytes": 8}"#)
    let pids = try host.ask("pid").split { !$0.isNumber }.compactMap { Int32($0) }
    #expect(try eventually { try readText(host.log).contains("→ hibernated") })
    kill(host.pid, SIGKILL)
    _ = try host.end()
    #expect(try eventually { pids.allSatisfy(hasEnded) && host.hasLeftNothing() })
  }

  @Test("With --end-with-host, a helper with one pipe is stopped when its host has ended")
  func endsWithHost() throws {
    // The shell is the caller, and the test holds the pipe. The helper ignores the end of its
    // input.
    let program = "import time\nheap = bytearray(b'x' * (8 << 20))\nwhile True: time.sleep(3600)"
    let host = try WrapHost(
      [TestMachine.python, "-c", program],
      options: WrapHost.hasty + ["--host-grace", "200ms", "--end-with-host"],
      starter: ["sh", "-c", #"exec 3<&0; "$@" <&3 3<&- >/dev/null & wait"#, "sh"])
    #expect(try eventually { (try? readText(host.log))?.contains("→ hibernated") == true })
    host.closeInput()
    kill(host.pid, SIGKILL)
    _ = try host.end()
    #expect(try eventually { try readText(host.log).contains("its host has ended, and the other") })
    #expect(try eventually { host.hasLeftNothing() })
  }

  @Test("A sleeping helper that ignores the end of its input is stopped when its host has left")
  func abandoned() throws {
    // Large enough to be hibernated.
    let program = "import time\nheap = bytearray(b'x' * (8 << 20))\nwhile True: time.sleep(3600)"
    let deaf = [TestMachine.python, "-c", program]
    let host = try WrapHost(deaf, options: WrapHost.hasty + ["--host-grace", "200ms"])
    try host.wait(toBe: "hibernated")
    try host.hangUp()
    #expect(try host.end() == .signaled(SIGTERM))
    #expect(try readText(host.log).contains("its host has closed its standard input and output"))
    #expect(host.hasLeftNothing())
  }
}
