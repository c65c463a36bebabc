import Control
import Glibc
import Linux
import TestSupport
import Testing

/// `dormouse footprint`, with a program whose object cache WorkerKit empties.
@Suite("Footprints over time") struct TraceTests {
  /// What `footprint show --json` prints.
  private struct Shown: Decodable {
    struct Numbers: Decodable {
      struct Warning: Decodable {
        var before: Int64
        var after: Int64
        var givenBack: Int64
      }
      var samples: Int
      var peak: Int64
      var rest: Int64
      var warnings: [Warning]
      var hibernations: Int
      var backgrounds: Int
    }
    var worker: String
    var statistics: Numbers
  }

  static let megabyte: Int64 = 1 << 20
  /// Reads commands from its standard input: `Hoard`.
  static let hoard = TestMachine.built("WorkerKitProbe")

  /// A verb of `dormouse footprint`; the environment names the socket.
  private func footprint(
    _ arguments: [String], in scratch: Scratch, socket: String = "/nowhere"
  ) -> Command {
    var command = Command.dormouse(["footprint"] + arguments)
    command.environment["DORMOUSE_CONTROL_SOCKET"] = socket
    command.directory = scratch.path
    return command
  }

  private func show(_ path: String, in scratch: Scratch) throws -> Shown {
    let outcome = try footprint(["show", "--json", path], in: scratch).run(in: scratch)
    guard outcome.code == 0 else { throw TestFailure("show: \(outcome)") }
    return try WireCodec.decode(Shown.self, from: Array(outcome.output.utf8))
  }

  /// Measured by the test.
  private func footprint(_ pid: Int32) throws -> Int64 {
    try Footprint.measure(pid)?.footprint ?? 0
  }

  private func waitFor(_ path: String, toHave text: String) throws {
    guard try eventually({ ((try? readText(path)) ?? "").contains(text) }) else {
      throw TestFailure("\(path) never had `\(text)`: \((try? readText(path)) ?? "")")
    }
  }

  /// A connected worker in the foreground, what feeds it, and its first footprint.
  private func cache() throws -> (Feeder, TestDaemon, pid: Int32, start: Int64) {
    let feeder = try Feeder()
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h } }
      workers: { cache: { command: [sh, -c, "exec \(Self.hoard) <\(feeder.path)"] } }
      """)
    try daemon.wait("cache", toBe: "foreground")
    #expect(try eventually { (try daemon.worker("cache").connections ?? 0) > 0 })
    let pid = try #require(try daemon.worker("cache").pid)
    try feeder.say("footprint")
    return (feeder, daemon, pid, try footprint(pid))
  }

  // MARK: the stair-step

  @Test func `A protocol warning brings the footprint back, and the recording shows it`() throws {
    let (feeder, daemon, pid, start) = try cache()

    let file = "\(daemon.scratch.path)/worker.footprint"
    let recorder = try footprint(
      ["record", "cache", "--every", "20ms", "-o", file], in: daemon.scratch,
      socket: daemon.socket
    ).start(output: "\(file).out", error: "\(file).err")
    try waitFor(file, toHave: #""footprint""#)
    var warnings = 0
    // On a busy machine the footprint may begin to fall after `WarningEffect.quiet`; then the
    // recording shows no effect, and the warning is repeated.
    let isShown = try eventually {
      warnings += 1
      try feeder.say("fill 24")
      let isFull = try eventually { try footprint(pid) >= start + 24 * Self.megabyte }
      try daemon.done("warn", "cache")
      let isEmpty = try eventually { try footprint(pid) <= start + Self.megabyte }
      guard isFull && isEmpty else { return false }
      return try eventually(within: .seconds(2)) {
        try show(file, in: daemon.scratch).statistics.warnings.contains {
          $0.after <= start + Self.megabyte && $0.givenBack >= 23 * Self.megabyte
        }
      }
    }
    #expect(isShown, "\((try? readText(file)) ?? "")")
    try waitFor(file, toHave: #""mark":"returned""#)

    // The change to the background and the hibernation are in the same recording.
    try daemon.done("background", "cache")
    try daemon.done("hibernate", "cache")
    try waitFor(file, toHave: #""to":"hibernated""#)
    kill(recorder.pid, SIGINT)
    #expect(try recorder.wait(.seconds(60)) == 0)

    let shown = try show(file, in: daemon.scratch)
    #expect(shown.worker == "cache")
    #expect(shown.statistics.peak >= start + 24 * Self.megabyte)
    #expect(shown.statistics.hibernations == 1 && shown.statistics.backgrounds == 1)
    #expect(shown.statistics.warnings.count == warnings)
    #expect(try readText(file).contains(#""end":"interrupted""#))
    // Without a terminal it prints a line for each event, and one for the file.
    let said = try readText("\(file).out")
    #expect(
      said.contains("memory warning sent") && said.contains("worker.footprint: "), "\(said)")
  }

  /// The C library keeps freed memory in each thread's heap; a warning must free that as well.
  @Test("Every one of five warnings brings the footprint back to within 1 MB of its start")
  func warnedAgain() throws {
    let (feeder, daemon, pid, start) = try cache()
    for round in 1...5 {
      try feeder.say("fill 24")
      #expect(try eventually { try footprint(pid) >= start + 24 * Self.megabyte })
      // A warning is answered when its effect has been measured, which a busy machine may delay;
      // the background when it is entered.
      let said = try daemon.done(round < 5 ? "warn" : "background", "cache")
      let isBack = try eventually { try footprint(pid) <= start + Self.megabyte }
      #expect(isBack, "\(round): from \(start), \(said)")
    }
  }

  @Test("Without a daemon `--warn-at` warns a program by a signal; its exit code is passed on")
  func command() throws {
    let scratch = try Scratch()
    let feeder = try Feeder()
    let file = "\(scratch.path)/command.footprint"
    let moments = (1...180).flatMap { ["--warn-at", "\($0)s"] }
    let recorder = try footprint(
      ["record", "--every", "20ms", "-o", file] + moments
        + ["--", "sh", "-c", "exec \(Self.hoard) <\(feeder.path)"], in: scratch
    ).start(output: "\(file).out", error: "\(file).err")
    try waitFor(file, toHave: #""footprint""#)
    let header = try readText(file).split(separator: "\n")[0]
    let digits = try #require(header.split(separator: #""pid":"#).last?.prefix { $0 != "," })
    let pid = try #require(Int32(digits))
    try feeder.say("footprint")
    try waitFor("\(file).out", toHave: "footprint")
    let start = try footprint(pid)
    // A warning may come during the fill, or too early for a busy machine; then the fill is
    // repeated. The file can be read while it grows.
    #expect(
      try eventually {
        try feeder.say("fill 16")
        return try eventually(within: .seconds(2)) {
          try show(file, in: scratch).statistics.warnings
            .contains { $0.givenBack >= 14 * Self.megabyte }
        }
      }, "\((try? readText(file)) ?? "")")
    #expect(try eventually { try footprint(pid) <= start + Self.megabyte })
    try feeder.say("quit")
    #expect(try recorder.wait(.seconds(60)) == 0)
    #expect(try show(file, in: scratch).statistics.peak >= start + 15 * Self.megabyte)
    #expect(try readText("\(file).err").hasPrefix("dormouse: \(file): "))
  }

  // MARK: how it ends

  @Test("A command's recording includes its descendants and ends with its exit code or signal")
  func ends() throws {
    let scratch = try Scratch()
    let failing = try footprint(
      [
        "record", "--every", "5ms", "-o", "a.footprint", "--", "sh", "-c",
        "sleep 3 & wait; exit 7",
      ],
      in: scratch
    ).run(in: scratch)
    #expect(failing.code == 7 && failing.output.isEmpty, "\(failing)")
    let text = try readText("\(scratch.path)/a.footprint")
    #expect(text.contains(#""processes":2}"#))
    #expect(text.hasSuffix(#""end":"exited","code":7}"# + "\n"))
    let killed = try footprint(
      ["record", "-q", "-o", "b.footprint", "--", "sh", "-c", "kill -9 $$"], in: scratch
    ).run(in: scratch)
    #expect(killed.code == nil && killed.error.isEmpty, "\(killed)")
    let missing = try footprint(["record", "--", "no-such-program"], in: scratch).run(in: scratch)
    #expect(missing.code == 127 && missing.error.contains("no-such-program"), "\(missing)")
    #expect(try listDirectory(scratch.path).filter { $0.hasPrefix("no-such") }.isEmpty)
  }

  @Test("`record --for` ends a command with exit code 0; no earlier recording is overwritten")
  func limit() throws {
    let scratch = try Scratch()
    for _ in 0..<2 {
      let outcome = try footprint(["record", "--for", "50ms", "--", "sleep", "604"], in: scratch)
        .run(in: scratch)
      #expect(outcome.code == 0, "\(outcome)")
    }
    let names = try listDirectory(scratch.path).filter { $0.hasSuffix(".footprint") }.sorted()
    #expect(names == ["sleep-2.footprint", "sleep.footprint"])
    #expect(try readText("\(scratch.path)/sleep.footprint").contains(#""end":"time""#))
  }

  @Test func `After kill -9 the recording is complete up to its last sample`() throws {
    let scratch = try Scratch()
    let sleeper = try Command(arguments: ["sleep", "605"]).start(
      output: "\(scratch.path)/out", error: "\(scratch.path)/err")
    defer {
      kill(sleeper.pid, SIGKILL)
      _ = try? sleeper.wait(.seconds(60))
    }
    let file = "\(scratch.path)/killed.footprint"
    let recorder = try footprint(
      ["record", "--pid", "\(sleeper.pid)", "--every", "1ms", "-o", file], in: scratch
    ).start(output: "\(file).out", error: "\(file).err")
    #expect(try eventually { ((try? readText(file)) ?? "").split(separator: "\n").count > 20 })
    kill(recorder.pid, SIGKILL)
    _ = try recorder.wait(.seconds(60))
    let shown = try show(file, in: scratch)
    #expect(shown.statistics.samples >= 20 && shown.statistics.rest > 0)
    // The end of the process is no error, and no footprint of 0 is recorded for it.
    let second = try footprint(
      ["record", "--pid", "\(sleeper.pid)", "--every", "1ms", "-o", "\(file)2"], in: scratch
    ).start(output: "\(file).out", error: "\(file).err")
    try waitFor("\(file)2", toHave: #""footprint""#)
    kill(sleeper.pid, SIGKILL)
    #expect(try second.wait(.seconds(60)) == 0)
    #expect(try show("\(file)2", in: scratch).statistics.rest > 0)
  }

  @Test("When the daemon ends, `footprint record` keeps the recording and exits with 5")
  func daemonGone() throws {
    let daemon = try TestDaemon(BadInputTests.idle)
    try daemon.wait("sleeper", toBe: "foreground")
    let file = "\(daemon.scratch.path)/ended.footprint"
    let recorder = try footprint(
      ["record", "sleeper", "-o", file], in: daemon.scratch, socket: daemon.socket
    ).start(output: "\(file).out", error: "\(file).err")
    try waitFor(file, toHave: #""footprint""#)
    daemon.stop(timeout: .seconds(60))
    let code = try recorder.wait(.seconds(60))
    #expect(code == 5, "\((try? readText("\(file).err")) ?? "")")
    #expect(try show(file, in: daemon.scratch).statistics.samples > 0)
  }

  @Test(
    "`footprint record` of a process that may not be measured fails and leaves no file",
    .enabled(if: TestMachine.canBecomeNobody, "only root can become another user"))
  func forbidden() throws {
    let scratch = try Scratch()
    chmod(scratch.path, 0o777)
    let program = "\(scratch.path)/dormouse"
    _ = try Command(arguments: ["cp", TestMachine.executable, program]).run(in: scratch)
    let record = ["footprint", "record", "--pid", "\(getpid())", "-o", "mine.footprint"]
    var command = Command(arguments: TestMachine.becomingNobody + [program] + record)
    command.directory = scratch.path
    let outcome = try command.run(in: scratch)
    #expect(outcome.code == 1 && outcome.error.contains("can't measure process"), "\(outcome)")
    #expect(try !listDirectory(scratch.path).contains("mine.footprint"))
  }

  // MARK: what is wrong

  @Test func `Wrong arguments, names and files get an error message and their exit codes`() throws {
    let daemon = try TestDaemon(BadInputTests.idle)
    let scratch = daemon.scratch
    let header = #"{"recording":"dormouse footprint","format":1,"every":0.1,"name":"x"}"#
    _ = try scratch.write("bad.footprint", header + "\n{\"t\":0,\"footprint\":1}\nnonsense\n{}\n")
    _ = try scratch.write("other.footprint", "dormouse footprint,1\nlength,5\n")
    _ = try scratch.write(
      "a.footprint", header + "\n{\"t\":0,\"footprint\":1000000}\n{\"t\":1,\"fo")
    _ = try scratch.write("b.footprint", header + "\n{\"t\":0,\"footprint\":2000000}\n")
    let cases: [(arguments: [String], code: Int32, text: String)] = [
      (["record"], 64, "one of the three"),
      (["record", "x", "--pid", "1"], 64, "one of the three"),
      (["record", "x", "--every", "0s"], 64, "at least 1ms"),
      (["record", "x", "--for", "5 ells"], 64, "--for"),
      (["record", "x", "--warn-signal", "WOBBLE"], 64, "WOBBLE"),
      (["record", "ghost"], 3, "ghost"),
      (["record", "--pid", "\(Int32.max)"], 1, "no process"),
      (["record", "-o", "/nowhere/x", "--", "true"], 73, "/nowhere/x"),
      (["show", "bad.footprint"], 65, "bad.footprint:3: "),
      (["show", "other.footprint"], 65, "not a footprint recording"),
      (["show", "missing.footprint"], 1, "missing.footprint"),
      (["show", "a.footprint", "--over", "lots"], 64, "--over"),
      (["show", "a.footprint", "--width", "3"], 64, "--width"),
      (["compare", "a.footprint", "b.footprint", "--fail-if-peak-grows", "much"], 64, "much"),
      (
        ["compare", "a.footprint", "b.footprint", "--fail-if-peak-grows", "99%"], 1,
        "peak: grown by"
      ),
      (["compare", "a.footprint", "b.footprint", "--fail-if-rest-grows", "512KB"], 1, "at rest"),
    ]
    for (arguments, code, text) in cases {
      let outcome = try footprint(arguments, in: scratch, socket: daemon.socket).run(in: scratch)
      #expect(outcome.code == code && outcome.error.contains(text), "\(arguments): \(outcome)")
    }
    let fine = try footprint(
      [
        "compare", "a.footprint", "b.footprint", "--fail-if-peak-grows", "100%", "--json", "--svg",
        "p.svg",
      ],
      in: scratch
    ).run(in: scratch)
    #expect(fine.code == 0 && fine.output.contains(#""key":"peak""#), "\(fine)")
    #expect(try readText("\(scratch.path)/p.svg").hasSuffix("</svg>\n"))
    let lonely = try footprint(["record", "x"], in: scratch).run(in: scratch)
    #expect(lonely.code == 4, "\(lonely)")
    let simulated = try Command.dormouse(["simulate", "--trace", "\(scratch.path)/a.footprint"])
      .run(in: scratch)
    #expect(
      simulated.code == 65 && simulated.error.contains("dormouse footprint show"), "\(simulated)")
  }
}

/// A FIFO, held open, for the standard input of a program that another process starts.
private final class Feeder {
  let path: String
  private let scratch: Scratch
  private let pipe: Descriptor

  init() throws {
    scratch = try Scratch()
    path = "\(scratch.path)/commands"
    guard mkfifo(path, 0o600) == 0 else { throw TestFailure("mkfifo") }
    pipe = try Descriptor.open(path, O_RDWR)
  }

  func say(_ line: String) throws { try pipe.writeAll(line + "\n") }
}
