import Glibc
import Policy
import Testing

@testable import PolicyFile

@Suite struct `The daemon's configuration` {
  static let full = """
    policy: server
    policy_overrides: { memory: { budget: 96MB } }
    state_directory: ../state
    socket: /run/d.sock
    workers:
      web:
        command: [python3, server.py, "8080", 1, ""]
        directory: web
        environment: { PORT: 8080, DEBUG: true, HOME: "${HOME}", MODE: "${MODE:-fast}", COST: $$5 }
        importance: 10
        autostart: false
        shed: { signal: SIGUSR1 }
        readiness: { tcp: 8080 }
        stop_signal: INT
        policy: { hibernate: { max_footprint: 64MB } }
      cache:
        command: redis-server --port 6379 --dir 'a b' "say \\"hi\\""
        shed: { command: [redis-cli, memory, purge] }
        readiness: { log_line: "Ready to accept" }
      plain: { command: sleep 60, shed: { notify: true }, readiness: { notify: true } }
    """

  @Test func `A configuration is read in full`() throws {
    let result = configuration(Self.full, environment: ["HOME": "/root", "MODE": ""])
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let read = try #require(result.value)
    var policy = try #require(library.load("server").value)
    policy.memory = .device(.megabytes(96))
    #expect(read.policy == policy)
    #expect(read.stateDirectory == "etc/../state")
    #expect(read.socket == "/run/d.sock")
    #expect(read.workers.map(\.name) == ["web", "cache", "plain"])

    var webPolicy = policy
    webPolicy.hibernate.maxFootprint = .megabytes(64)
    var web = WorkerConfiguration(
      name: "web", command: ["python3", "server.py", "8080", "1", ""], directory: "etc/web",
      environment: [
        "PORT": "8080", "DEBUG": "true", "HOME": "/root", "MODE": "fast", "COST": "$5",
      ],
      importance: 10, autostart: false, shed: .signal(SIGUSR1), readiness: .tcp(8080),
      stopSignal: SIGINT, policy: webPolicy)
    web.hooks = Hooks(directory: "etc")
    #expect(read.workers[0] == web)
    #expect(
      read.workers[1]
        == WorkerConfiguration(
          name: "cache",
          command: ["redis-server", "--port", "6379", "--dir", "a b", "say \"hi\""],
          directory: "etc", shed: .command(["redis-cli", "memory", "purge"]),
          readiness: .logLine("Ready to accept"), policy: policy))
    #expect(read.workers[2].shed == .notify)
    #expect(read.workers[2].readiness == .notify)
  }

  @Test(arguments: ["", "workers:\n", "workers: {}\n", "policy: ios-5\n"])
  func `An empty configuration, or one without workers, gives the defaults`(text: String) {
    var read = configuration(text).value
    read?.origins = Origins()
    // The library has the directories of this machine.
    read?.library = .builtIn
    #expect(read == DaemonConfiguration())
    #expect(configuration(text).diagnostics.isEmpty)
  }

  @Test func `An error about an unknown policy lists the policies that exist`() {
    #expect(
      configuration("policy: ios5\nworkers: {}\n").rendered == """
        etc/dormouse.yaml:1:9: error: there is no policy named `ios5`
        policy: ios5
                ^
        help: did you mean `ios-5`? Available: android, developer, ios-5, iphone-os-3, server, \
        standard
        """)
    #expect(
      configuration("policy: none.yaml").errors.first?.message
        == "the file can't be opened: No such file or directory")
    #expect(configuration("policy: none.yaml").errors.first?.file == "etc/none.yaml")
    #expect(configuration("policy: \(shippedDirectory)/server.yaml").value?.policy.name == "server")
  }

  static let worker: [BadText] = [
    BadText("command: []", "`command` names no program"),
    BadText("command: ''", "`command` names no program"),
    BadText(
      "command: [a, [b]]",
      "`command` must be a list of words such as `[sleep, \"60\"]`, not a list"),
    BadText("command: say 'hi", "`command` has a quote (') without its end"),
    BadText("command: 'a\\'", "`command` ends with a `\\` that escapes nothing"),
    BadText("importance: 5", "`w` has no `command`", "write `command: [program, argument]`"),
    BadText(
      "command: a, comand: b", "unknown key `comand` in `workers.w`", "did you mean `command`?"),
    BadText(
      "command: a, importance: 101",
      "`importance` must be a whole number from 0 to 100, not `101`"),
    BadText(
      "command: a, stop_signal: TREM",
      "`stop_signal` must be a signal's name such as `TERM`, not `TREM`", "did you mean `TERM`?"),
    BadText(
      "command: a, stop_signal: 15",
      "`stop_signal` must be a signal's name such as `TERM`, not `15`", "write `TERM`"),
    BadText(
      "command: a, reload_signal: KILL",
      "`reload_signal` can't be `KILL`: no process can catch it"),
    BadText(
      "command: a, umask: 88", "`umask` must be octal permission bits such as `022`, not `88`"),
    BadText(
      "command: a, umask: 1777", "`umask` must be octal permission bits such as `022`, not `1777`"),
    BadText(
      "command: a, stop_signal: STOP", "`stop_signal` can't be `STOP`: it doesn't end a process"),
    BadText(
      "command: a, shed: { signal: KILL }", "`signal` can't be `KILL`: no process can catch it"),
    BadText("command: a, shed: { http: { path: /shed } }", "`http` needs `port`"),
    BadText(
      "command: a, shed: { http: { port: 80, method: GET } }",
      "`method` must be `POST`, `PUT`, `PATCH` or `DELETE`, not `GET`"),
    BadText(
      "command: a, fdstore: 513", "`fdstore` must be a whole number from 0 to 512, not `513`"),
    BadText(
      "command: a, readiness: { http: { path: / } }", "unknown key `http` in `workers.w.readiness`",
      "write `httpGet: { path: /healthz, port: 8080 }`, as Kubernetes does"),
    BadText(
      "command: a, readiness: { tcp: 80, notify: true }",
      "only one of `notify`, `notification_fd`, `tcp`, `log_line`, `log_pattern`, `exec`, "
        + "`httpGet` or `tcpSocket` can be chosen"),
    BadText(
      "command: a, shed: {}", "this needs one of `signal`, `command`, `http` or `notify`",
      "write `{ signal: USR1 }`"),
    BadText(
      "command: a, readiness: { tcp: 70000 }",
      "`tcp` must be a whole number from 1 to 65535, not `70000`"),
    BadText(
      "command: a, environment: { A: '${NOPE}' }",
      "`A` needs the variable `NOPE`, which the daemon doesn't have",
      "set it, or write `${NOPE:-default}`"),
    BadText(
      "command: a, environment: { A: '${' }", "`A` has `${` without its `}`",
      "write `$$` for a `$`"),
    BadText(
      "command: a, environment: { A: '${a-b}' }", "`A` can't read `${a-b}`",
      "write `${VAR}`, `${VAR:-default}` or `${VAR:+text}`"),
    BadText(
      "command: a, environment: { 'A=B': c }",
      "`A=B` can't be a variable's name: empty, or with `=` or NUL in it"),
    BadText(
      "command: a, environment: { A: [b] }",
      "`A` must be a text, a number, true or false, not a list"),
    BadText(
      "command: a, directory: ~/x", "`directory` can't begin with `~`: only a shell expands it",
      "write the path out, or `${HOME}`"),
    BadText(
      "command: a, policy: { ladder: { warning: [warn] } }",
      "`ladder` applies to all workers together and can't be set for one",
      "put it under `policy_overrides` at the top of the file"),
    BadText(
      "command: a, policy: { hibernate: { max_footprnt: 1MB } }",
      "unknown key `max_footprnt` in `workers.w.policy.hibernate`",
      "did you mean `max_footprint`?"),
  ]

  @Test(arguments: worker)
  func `A wrong value of a worker gives one error that says what is wrong`(bad: BadText) {
    let result = configuration("workers: { w: { \(bad.text) } }")
    #expect(result.value == nil)
    #expect(result.diagnostics.map(\.message) == [bad.message])
    #expect(result.diagnostics.first?.suggestion == bad.suggestion)
    #expect(result.diagnostics.first?.position?.line == 1)
  }

  @Test(arguments: [".web", "-web", "we b", "a/b", String(repeating: "x", count: 65), "ä", "''"])
  func `A configuration refuses a name that a worker can't have`(name: String) {
    let result = configuration("workers:\n  \(name): { command: run }\n")
    #expect(result.errors.count == 1)
    #expect(result.errors.first?.message.hasSuffix("can't be a worker's name") == true)
  }

  @Test func `A command with shell syntax gives a warning that no shell runs it`() {
    let result = configuration("workers: { w: { command: a | b } }")
    #expect(result.value?.workers.first?.command == ["a", "|", "b"])
    #expect(
      result.warnings.map(\.message) == [
        "`|` is passed to the program as an argument: no shell runs this command"
      ])
  }

  @Test func `A configuration refuses a socket path that is longer than 107 bytes`() {
    let path = "/" + String(repeating: "x", count: 107)
    #expect(
      configuration("socket: \(path)").errors.map(\.message)
        == ["`socket` is 108 bytes long; a socket's path has at most 107"])
  }

  @Test func `One run finds the errors of all workers`() {
    let result = configuration(
      """
      polcy: ios-5
      policy_overrides: { memory: { budget: 96mb } }
      workers:
        a: { command: run, importance: high }
        a: { command: run }
        b: { comand: run }
      """)
    #expect(result.value == nil)
    #expect(result.errors.compactMap(\.position?.line) == [1, 2, 5, 6, 6])
  }
}
