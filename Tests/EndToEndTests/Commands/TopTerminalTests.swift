import Glibc
import TestSupport
import Testing

/// `top` and `ps --watch` on a terminal, with keys typed; see `Tests/Fixtures/screen.py`.
@Suite("top in a terminal") struct TopTerminalTests {
  private static let four = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      large: { command: [\(TestMachine.python), -c, "x = bytearray(30 << 20); import time; \
    time.sleep(671)"] }
      busy: { command: "sh -c 'while :; do :; done'" }
      talker: { command: "sh -c 'printf \\"\\\\033[2J\\\\033[31mhello\\\\n\\"; sleep 672 & wait'" }
      failed: { command: "sh -c 'exit 3'", restart: { when: always, backoff: { initial: 1h } } }
    """

  /// One whose largest worker is the first in the list of the first look, and so selected.
  private func daemon() throws -> TestDaemon {
    let daemon = try TestDaemon(Self.four, starts: false)
    // Tests stop the daemon with SIGSTOP, which would count as a blocked event loop.
    daemon.set("DORMOUSE_LOOP_CHECK", "off")
    try daemon.start()
    try awaitLargest(daemon)
    return daemon
  }

  /// A worker that was just launched is measured a moment later, and isn't the first in the list
  /// until then.
  private func awaitLargest(_ daemon: TestDaemon) throws {
    #expect(try eventually { try daemon.worker("large").footprint > 30 << 20 })
  }

  private func play(
    _ steps: [String], _ arguments: [String] = ["top"], on daemon: TestDaemon, columns: Int = 80,
    rows: Int = 24, variables: [String: String] = [:]
  ) throws {
    let path = daemon.scratch.uniquePath("steps")
    _ = try daemon.scratch.write(
      String(path.split(separator: "/").last ?? ""), steps.joined(separator: "\n") + "\n")
    var person = Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("screen.py"), "\(columns)", "\(rows)", path, "--",
        TestMachine.executable,
      ] + arguments + ["--socket", daemon.socket])
    person.environment.merge(variables) { $1 }
    let outcome = try person.run(in: daemon.scratch, limit: .seconds(300))
    #expect(outcome.code == 0, "\(outcome)")
  }

  @Test("Keys sort, filter, and show processes, log and memory of the selected worker")
  func looking() throws {
    let daemon = try daemon()
    try play(
      [
        "see ^▸ large ", "see by footprint, largest first", "see ^  busy .* [1-9][0-9.]* %  ",
        "see ^available █|^available [▁-█]", "type s", "see by name", #"see ^  NAME.*\n  busy "#,
        "type sss", "see by processor time", #"see ^  NAME.*\n  busy "#, #"type \x1b[F"#,
        "miss ^▸ large", #"type \x1b[H"#, "see ^▸ busy", "type /talk", "see ^/talk_",
        "miss ^  busy", #"type \n"#, "see only those with", "see ^▸ talker", "type t",
        "see ── processes of talker: 2, ", "see  sh$", "see └─ sleep$", "type l",
        "see ── log of talker", "see (^|│ )hello$", "type m", "see ── memory of talker",
        "see (^|│ )footprint",
        "see (^|│ )swapped", #"type \x1b"#, "see ^  large", "type ?", "see ^Keys of dormouse top",
        "type x", "miss ^Keys", "type qq", "end 0",
      ], on: daemon)
  }

  @Test(
    "Keys hibernate, wake and restart a real worker, and its answer is shown", arguments: ["", "1"])
  func changing(noColor: String) throws {
    let daemon = try daemon()
    try play(
      [
        "see ^▸ large ", "type H", "see ^large is hibernated in ", "see ^▸ large +hibernated",
        "type W", "see ^large is in the background|^large .*woken|^large runs",
        "see ^▸ large +background",
      ] + ["type q", "end 0"], on: daemon, variables: ["NO_COLOR": noColor])
    let before = try #require(try daemon.worker("large").pid)
    try play(
      [
        "see ^▸ large ", "type R", #"see ^restart large\? "#, "type n", "see not done", "type R",
        #"see ^restart large\? "#, "type y", "see ^large is running|^large .*started",
        "type q", "end 0",
      ], on: daemon, variables: ["NO_COLOR": noColor])
    let after = try #require(try daemon.worker("large").pid)
    #expect(before != after)
    try awaitLargest(daemon)
    try play(
      [
        "see ^▸ large ", "type /failed", "see ^▸ failed", #"type \nS"#,
        "see ^failed (is|can|has)", "type q", "end 0",
      ], on: daemon, variables: ["NO_COLOR": noColor])
  }

  @Test("A new size is drawn at once, a small one gets a sentence, and ASCII replaces blocks")
  func sizes() throws {
    let daemon = try daemon()
    try play(
      [
        "see ^▸ large ", "resize 60 12", "see ^▸ large ", "resize 50 12",
        "see ^This terminal has 50 columns", "resize 120 30", "see ^▸ large .*│",
        "see │ ── log of large", "type l", "see REASON",
        #"type \x04"#, "end 0",
      ], on: daemon)
    try play(
      [
        "see ^> large ", "see ^available [_.:=+*#-]", "type t", "see ^-- processes of", "type q",
        "end 0",
      ],
      on: daemon, variables: ["LC_ALL": "C"])
  }

  @Test(
    "While the daemon is stopped keys work and the screen says that it waits; later top continues")
  func slowDaemon() throws {
    let daemon = try daemon()
    defer { kill(daemon.pid, SIGCONT) }
    let steps = [
      "see ^▸ large ", "signal \(SIGSTOP) \(daemon.pid)", "see has not answered for [0-9]",
      "type s",
      "see by name", "type H", "see has not answered", "signal \(SIGCONT) \(daemon.pid)",
      "see is hibernated in ", "signal \(SIGSTOP) \(daemon.pid)", "see has not answered for",
      "type q", "end 0",
    ]
    try play(steps, on: daemon)
  }

  @Test("The selected worker's log is below or beside the list and is followed if it is a file")
  func log() throws {
    for columns in [80, 120] {
      let daemon = try daemon()
      let log = try #require(try daemon.worker("talker").log)
      try play(
        [
          "see ^▸ large ", "type /talk", #"type \n"#,
          columns < 120 ? "see ^── log of talker" : "see ^▸ talker .*│", "see (^|│ )hello$",
          #"type \n"#, "miss NAME", "see ^hello$",
          #"run printf '\033]0;x\007more\033[5A\n' >> '\#(log)'"#, "see ^more$",
          "type u", #"type \n"#, "see NAME", "type g", "run rm '\(log)' && mkfifo '\(log)'",
          "see its log can't be read: opening as a regular file", "type q", "end 0",
        ], on: daemon, columns: columns)
    }
  }

  @Test func `When the daemon ends, top restores the terminal and ends with code 5`() throws {
    let daemon = try daemon()
    try play(["see ^▸ large ", "signal \(SIGKILL) \(daemon.pid)", "end 5"], on: daemon)
  }

  @Test("`ps --watch` on a terminal redraws the table in place until q")
  func watch() throws {
    let daemon = try daemon()
    try play(
      [
        "see ^NAME +STATE", "see ^large .* background", "see ^4 workers", "type x",
        "signal \(SIGSTOP) \(daemon.pid)", "resize 100 20", "see ^large",
        "signal \(SIGCONT) \(daemon.pid)", "see ^busy ", "type q", "end 0",
      ], ["ps", "--watch", "-d", "200ms"], on: daemon)
    // A table that is longer than the screen.
    try play(
      ["see and [0-9]+ more lines", "type q", "end 0"], ["ps", "--watch"], on: daemon, columns: 60,
      rows: 4)
  }
}
