import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

@Suite("The policy verbs") struct PolicyVerbTests {
  fileprivate let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    _ = try scratch.write(
      "dormouse/dormouse.yaml",
      """
      policy_overrides:
        hibernate: { after: 20s }
      workers:
        web: { command: sleep 1, policy: { hibernate: { max_footprint: 64MB } } }
      policy: ios-5
      """)
    _ = try scratch.write(
      "dormouse/conf.d/db.yaml", "workers: { db: { command: sleep 2, importance: 4 } }\n")
  }

  fileprivate func dormouse(_ arguments: String...) throws -> Outcome {
    var command = Command.dormouse(arguments)
    command.environment["XDG_CONFIG_HOME"] = scratch.path
    // No daemon listens there.
    command.environment["DORMOUSE_CONTROL_SOCKET"] = "\(scratch.path)/none.sock"
    return try command.run(in: scratch)
  }

  fileprivate var configuration: String { "\(scratch.path)/dormouse/dormouse.yaml" }

  @Test("`policy check` takes files, directories, parts of a configuration, or the daemon's own")
  func check() throws {
    let whole = ": ok: 2 workers, policy ios-5\n"
    #expect(try dormouse("policy", "check").output == configuration + whole)
    let directory = "\(scratch.path)/dormouse"
    #expect(try dormouse("policy", "check", directory).output == directory + whole)
    let fragment = "\(directory)/conf.d/db.yaml"
    #expect(try dormouse("policy", "check", fragment).output == fragment + whole)
  }

  @Test("`policy check` warns of users, directories and programs that this machine lacks")
  func missing() throws {
    let file = try scratch.write(
      "mine/dormouse.yaml",
      """
      workers:
        one:
          command: [no-such-program-690, -x]
        two:
          command: sleep 1
          directory: /no/such/directory
        three: { command: ./run, environment: { PATH: /nowhere } }
        four: { command: sleep 1, user: no-such-user-690 }
      """)
    let outcome = try dormouse("policy", "check", file)
    #expect(outcome.code == 0 && outcome.output.contains("ok: 4 workers"), "\(outcome)")
    let lines = outcome.error.split(separator: "\n")
    for (line, text) in [
      (3, "`one` can't start on this machine: there is no command"),
      (6, "`two` can't start on this machine: the directory /no/such/directory doesn't exist"),
      (7, "`three` can't start on this machine: there is no command `./run`"),
      (8, "`four` can't start on this machine: there is no user `no-such-user-690`"),
    ] {
      #expect(
        lines.contains { $0.hasPrefix("\(file):\(line):") && $0.contains(": warning: \(text)") },
        "\(text)\n\(outcome)")
    }
    #expect(outcome.output.contains("(4 warnings)"), "\(outcome)")
    try scratch.write("mine/run", "#!/bin/sh\n")
    chmod("\(scratch.path)/mine/run", 0o755)
    #expect(try dormouse("policy", "check", file).output.contains("(3 warnings)"))
  }

  @Test("`policy check` finds the errors of all files in one run")
  func errors() throws {
    _ = try scratch.write(
      "dormouse/conf.d/web.yaml", "workers: { web: { command: x, importnce: 1 } }\n")
    _ = try scratch.write("bad.yaml", "mode: shado\n")
    let outcome = try dormouse("policy", "check", configuration, "\(scratch.path)/bad.yaml")
    #expect(outcome.code == 65 && outcome.output.isEmpty)
    for expected in [
      "conf.d/web.yaml:1:12: error: the worker `web` is declared twice; the first is "
        + "\(configuration):4:3",
      "conf.d/web.yaml:1:31: error: unknown key `importnce`", "help: did you mean `importance`?",
      "bad.yaml:1:7: error: `mode` must be", "help: did you mean `shadow`?", "3 errors\n",
    ] {
      #expect(outcome.error.contains(expected), "\(expected)\n\(outcome)")
    }
  }

  @Test("`policy show --effective` names the file and line that each value comes from")
  func effective() throws {
    let outcome = try dormouse("policy", "show", "--effective", "--worker", "web")
    #expect(
      outcome.code == 0
        && outcome.error
          == "dormouse: no daemon is running; these are the values of \(configuration)\n",
      "\(outcome)")
    let named = try dormouse("policy", "show", "--effective", "--worker", "web", configuration)
    #expect(named.output == outcome.output && named.error.isEmpty, "\(named)")
    let lines = outcome.output.split(separator: "\n").map { line in
      line.split(separator: " ").joined(separator: " ")
    }
    #expect(lines.contains("hibernate.max_footprint 64MB \(configuration):4 (worker)"))
    #expect(lines.contains("hibernate.after 20s \(configuration):2 (override)"))
    // ios-5 has no such key. Its values are from a file, or from the executable.
    #expect(lines.contains("background.wake_for_timers never default"))
    #expect(!outcome.output.contains("\u{1B}"))

    let machine = try dormouse("policy", "show", "--json")
    let values = try #require(JSON(Array(machine.output.utf8))?["values"]?.elements)
    let largest = values.first { $0["key"]?.text == "hibernate.max_footprint" }
    #expect(largest?["value"]?.text == "16MB", "\(machine)")
    // Without `--effective` and `--json` the output is a policy file.
    let text = try dormouse("policy", "show", "--worker", "web").output
    let file = try scratch.write("shown.yaml", text)
    #expect(try dormouse("policy", "check", file).code == 0)
    #expect(text.contains("  max_footprint: 64MB\n"))
  }

  @Test("`policy show` refuses an unknown worker and suggests the nearest name")
  func unknownWorker() throws {
    let outcome = try dormouse("policy", "show", "--worker", "wb")
    #expect(outcome.code == 3 && outcome.error.contains("did you mean `web`?"), "\(outcome)")
    #expect(try dormouse("policy", "show", "ios-5", "--worker", "web").code == 64)
  }

  @Test(
    "`policy diff` exits with 0 for equal policies and with 1 for different ones, as diff(1) does")
  func diff() throws {
    let same = try dormouse("policy", "diff", "ios-5", TestMachine.policy("ios-5"))
    #expect(same.code == 0 && same.output.isEmpty, "\(same)")
    let other = try dormouse("policy", "diff", "ios-5", configuration)
    #expect(other.code == 1)
    #expect(other.output.contains("suspended workers are hibernated sooner"), "\(other)")
    #expect(other.output.split(separator: "\n").count == 2)
    let json = try dormouse("policy", "diff", "--json", "ios-5", configuration)
    #expect(
      json.output.hasPrefix(
        #"{"differences":[{"key":"hibernate.after","left":"30s","meaning":""#), "\(json)")
    #expect(json.output.hasSuffix(#"],"schema":1}"# + "\n"), "\(json)")
    #expect(try dormouse("policy", "diff", "ios-5", "ios-6").code == 65)
    let set = try dormouse("policy", "diff", "server", "--set", "hibernate.after=7m")
    #expect(set.code == 1 && set.output.contains("7m"), "\(set)")
    #expect(set.output.contains("server --set hibernate.after=7m"), "\(set)")
    #expect(try dormouse("policy", "diff", "server", "--set", "hibernate.aftr=7m").code == 64)
    #expect(try dormouse("policy", "diff", "server").code == 64)
  }

  @Test("`policy schema` prints valid JSON for policies and for configurations")
  func schema() throws {
    for kind in ["policy", "configuration"] {
      let text = try dormouse("policy", "schema", "--kind", kind).output
      #expect(text.contains("https://json-schema.org/draft/2020-12/schema"))
      let file = try scratch.write("\(kind).json", text)
      let script = "import json, sys; json.load(open(sys.argv[1]))"
      #expect(try Command(arguments: ["python3", "-c", script, file]).run(in: scratch).code == 0)
    }
  }

  @Test("`import` prints a configuration that `policy check` accepts")
  func importing() throws {
    let procfile = try scratch.write("Procfile", "web: sleep 1 # $PORT\nworker: sleep 2\n")
    let compose = try scratch.write(
      "process-compose.yaml",
      "processes: { web: { command: sleep 1, namespace: a, is_tty: true, depends_on: { db: {} } },"
        + " db: { command: 'sleep 2 | cat' } }")
    for file in [procfile, compose] {
      let outcome = try dormouse("import", file)
      #expect(outcome.code == 0, "\(outcome)")
      let made = try scratch.write("dormouse.yaml", outcome.output)
      let check = try dormouse("policy", "check", made)
      #expect(
        check.code == 0 && check.output.contains(": ok: 2 workers, policy standard"), "\(check)")
    }
    #expect(
      try dormouse("import", compose).error
        == "2 workers; 1 note on what is different, in the comments\n")
    #expect(try dormouse("import", "--format", "process-compose", procfile).code == 65)
    #expect(try dormouse("import", "/no/such/Procfile").code == 65)
  }

  @Test("`import --output` lets no more users read the values of `.env` than may read that")
  func privateEnvironment() throws {
    let service = "{ command: sleep 1, environment: { KEY: \"${KEY}\" } }"
    let compose = try scratch.write("compose.yaml", "services: { a: \(service) }\n")
    chmod(try scratch.write(".env", "KEY=secret-690\n"), 0o600)
    #expect(try dormouse("import", compose).output.contains("secret-690"))
    let output = "\(scratch.path)/made.yaml"
    #expect(try dormouse("import", compose, "-o", output).code == 0)
    #expect(try readStatus(of: output).st_mode & 0o777 == 0o600)
    // Another group than that of `.env` may read the file that is replaced.
    #expect(chmod("\(scratch.path)/.env", 0o640) == 0 && chmod(output, 0o644) == 0)
    #expect(try dormouse("import", compose, "--force", "-o", output).code == 0)
    #expect(try readStatus(of: output).st_mode & 0o777 == 0o600)
  }

  @Test("A file that a verb writes replaces what a link names, and no pipe or device")
  func writtenFile() throws {
    let procfile = try scratch.write("Procfile", "web: sleep 1\n")
    let target = try scratch.write("dotfiles/made", "old\n")
    let link = "\(scratch.path)/made.yaml"
    #expect(symlink(target, link) == 0)
    #expect(try dormouse("import", procfile, "--force", "-o", link).code == 0)
    #expect(try readText(target).contains("  web:") && readLink(link) == target)
    let pipe = "\(scratch.path)/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let reader = try Descriptor.open(pipe, O_RDWR | O_NONBLOCK)
    #expect(try dormouse("import", procfile, "--force", "-o", pipe).code == 0)
    let text = String(decoding: try reader.read(upTo: 1 << 16), as: UTF8.self)
    #expect(text.contains("  web:"), "\(text)")
  }

  @Test("`/dev/stdout` is standard output, also if that is a file with other output in it")
  func standardOutput() throws {
    let procfile = try scratch.write("Procfile", "web: sleep 1\n")
    let file = "\(scratch.path)/all"
    let call = "'\(TestMachine.executable)' import '\(procfile)' --force -o /dev/stdout"
    let script = "{ echo first; \(call); echo last; } > '\(file)'"
    #expect(try Command(arguments: ["sh", "-c", script]).run(in: scratch).code == 0)
    let text = try readText(file)
    #expect(text.hasPrefix("first\n") && text.hasSuffix("last\n"), "\(text)")
    #expect(text.contains("  web:"), "\(text)")
  }

  @Test("`import` names an `.env` that can't be read, and does without it")
  func unreadableEnvironment() throws {
    let procfile = try scratch.write("Procfile", "web: sleep 1\n")
    #expect(try !dormouse("import", procfile).error.contains(".env"))
    mkdir("\(scratch.path)/.env", 0o755)
    let outcome = try dormouse("import", procfile)
    #expect(outcome.code == 0 && outcome.output.contains("  web:"), "\(outcome)")
    #expect(outcome.error.contains("/.env: warning: it can't be read"), "\(outcome)")
  }
}

extension PolicyVerbTests {
  @Test("`policy show --set` shows the values that it changes, and names a mistyped key")
  func settings() throws {
    let after = "--set=hibernate.after=5m"
    let outcome = try dormouse("policy", "show", "server", after, "--set", "hibernate.after=6m")
    #expect(outcome.code == 0 && outcome.output.contains("\n  after: 6m\n"), "\(outcome)")
    let shown = try dormouse("policy", "show", "--effective", "--worker", "web", after)
    #expect(shown.error.isEmpty)
    let lines = shown.output.split(separator: "\n").map {
      $0.split(separator: " ").joined(separator: " ")
    }
    #expect(lines.contains("hibernate.after 5m --set"), "\(shown)")
    #expect(lines.contains("hibernate.max_footprint 64MB \(configuration):4 (worker)"))
    #expect(
      try dormouse("policy", "show", "--json", after).output.contains(
        #"{"from":"option","key":"hibernate.after","value":"5m"}"#))

    let wrong = try dormouse("policy", "show", "server", "--set", "hibernate.aftr=5m")
    #expect(wrong.code == 64 && wrong.output.isEmpty)
    #expect(
      wrong.error
        == "dormouse: --set `hibernate.aftr=5m`: unknown key `hibernate.aftr`; "
        + "did you mean `hibernate.after`?\n", "\(wrong)")
  }

  @Test("`simulate --set` changes the policies that are compared, and reports a mistake first")
  func simulatedSettings() throws {
    let common = ["simulate", "--workers", "30", "--hours", "3", "--policy", "ios-5", "--json"]
    func run(_ more: String...) throws -> Outcome {
      var command = Command.dormouse(common + more)
      command.environment["XDG_CONFIG_HOME"] = scratch.path
      return try command.run(in: scratch)
    }
    let usual = try run()
    let never = try run(
      "--set", "hibernate.enabled=false", "--set", "background.suspend_after=never")
    #expect(usual.code == 0 && never.code == 0, "\(never)")
    #expect(usual.output != never.output)
    let wrong = try run("--set", "hibernate.enabled=no")
    #expect(wrong.code == 64 && wrong.output.isEmpty)
    #expect(
      wrong.error
        == "dormouse: --set `hibernate.enabled=no`: `enabled` must be `true` or `false`, not `no`; "
        + "write `false`\n", "\(wrong)")
  }
}
