import Control
import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

@Suite("Projects with a daemon of their own") struct ProjectsUnderDaemonTests {
  /// A user's directories, and projects in them.
  private final class Home {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    deinit {
      for name in ["shop", "forum"] { _ = try? run(["down"], in: name) }
    }

    func project(_ name: String, _ configuration: String) throws {
      for directory in [name, "\(name)/src", "run", "state"] {
        try makeDirectory("\(scratch.path)/\(directory)", mode: 0o700)
      }
      try scratch.write("\(name)/dormouse.yaml", configuration)
    }

    func command(_ words: [String], in directory: String) -> Command {
      var command = Command(arguments: [Surroundings.executable] + words)
      command.directory = directory.isEmpty ? "/" : "\(scratch.path)/\(directory)"
      command.environment["XDG_RUNTIME_DIR"] = "\(scratch.path)/run"
      command.environment["XDG_STATE_HOME"] = "\(scratch.path)/state"
      command.environment["XDG_CONFIG_HOME"] = "\(scratch.path)/config"
      command.environment["DORMOUSE_CGROUP"] = "/proc/nowhere"
      return command
    }

    @discardableResult
    func run(_ words: [String], in directory: String) throws -> Outcome {
      try command(words, in: directory).run(in: scratch)
    }
  }

  private static let sleeper = "workers: { one: { command: [sh, -c, 'echo hi; exec sleep 690'] } }"

  @Test("Two projects run side by side, and verbs use that of their directory")
  func sideBySide() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.project("forum", "workers: { a: { command: sleep 690 }, b: { command: sleep 690 } }")
    for name in ["shop", "forum"] {
      let up = try home.run(["up", "-d"], in: "\(name)/src")
      #expect(up.code == 0 && up.error.contains("project \(name): "), "\(up)")
    }
    #expect(try home.run(["ps", "--names"], in: "shop/src").output == "one\n")
    #expect(try home.run(["ps", "--names"], in: "forum").output == "a\nb\n")
    #expect(try home.run(["ps", "--names", "--project", "shop"], in: "").output == "one\n")
    #expect(try home.run(["ps"], in: "").code == CommandExit.noDaemon.rawValue)
    let wrong = try home.run(["ps", "--project", "shopp"], in: "")
    #expect(wrong.code == 64 && wrong.error.contains("did you mean `shop`?"), "\(wrong)")
    let json = try home.run(["ls", "--json"], in: "").output
    #expect(json.components(of: "\"isRunning\":true") == 2 && json.contains("/forum\""), "\(json)")
    #expect(try home.run(["up", "-d"], in: "shop").error.contains("nothing changed"))
    #expect(try home.run(["down"], in: "shop").code == 0)
    #expect(try home.run(["down"], in: "shop").code == CommandExit.noDaemon.rawValue)
    let without = try home.run(["ps"], in: "shop")
    #expect(without.code == CommandExit.noDaemon.rawValue)
    #expect(without.error.contains("`dormouse up` starts one with "), "\(without)")
    let table = try home.run(["ls"], in: "").output
    #expect(
      table.components(of: "running") == 1 && table.components(of: "stopped") == 1, "\(table)")
  }

  @Test("`up` shows the workers' output, and Ctrl-C stops workers and daemon")
  func foreground() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    #expect(try eventually { try readText(output).contains("one | hi") })
    #expect(try home.run(["ps", "--names"], in: "shop").output == "one\n")
    kill(process.pid, SIGINT)
    #expect(try process.wait(.seconds(60)) == 0)
    #expect(try readText(error).contains("all workers are stopped"))
    #expect(try home.run(["down"], in: "shop").code == CommandExit.noDaemon.rawValue)
  }

  @Test("`up` says what is wrong with a configuration, and leaves no daemon")
  func wrong() throws {
    let home = try Home()
    try home.project("shop", "workers: { one: { comand: sleep 1 } }")
    let up = try home.run(["up", "-d"], in: "shop")
    #expect(up.code == CommandExit.badConfiguration.rawValue, "\(up)")
    #expect(up.error.contains("did you mean `command`?"), "\(up)")
    let nowhere = try home.run(["up"], in: "")
    #expect(nowhere.code == 64 && nowhere.error.contains("there is no dormouse.yaml here"))
  }

  @Test("Ctrl-C at the output of `attach` stops no worker")
  func attach() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.run(["up", "-d"], in: "shop")
    let output = home.scratch.uniquePath("out")
    let process = try home.command(["attach"], in: "shop")
      .start(output: output, error: home.scratch.uniquePath("err"))
    #expect(try eventually { try home.run(["ps"], in: "shop").output.contains("one") })
    // It has its signals once it has connected, and a signal before that ends it as well.
    kill(process.pid, SIGINT)
    _ = try process.wait(.seconds(60))
    #expect(try home.run(["ps", "--names"], in: "shop").output == "one\n")
  }
}

extension String {
  /// How often `part` is in it.
  fileprivate func components(of part: String) -> Int {
    split(separator: part, omittingEmptySubsequences: false).count - 1
  }
}
