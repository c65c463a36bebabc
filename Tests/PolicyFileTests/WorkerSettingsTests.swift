import Policy
import Testing

@testable import PolicyFile

@Suite("Keys of a worker on a command line") struct WorkerSettingsTests {
  private let plain = WorkerConfiguration(
    name: "web", command: ["./server", "-x"], directory: "/srv")

  private func applied(_ arguments: [String]) throws -> WorkerConfiguration {
    try WorkerSettings(arguments).applied(to: plain)
  }

  private func error(_ arguments: [String]) -> String {
    do throws(SettingError) {
      _ = try WorkerSettings(arguments)
      return "no error"
    } catch { return error.description }
  }

  @Test("Keys of a worker and of a policy are read as in a configuration, and others stay")
  func values() throws {
    let worker = try applied([
      "restart=on-failure", "readiness.tcp=8080", "limits.memory=1GB", "groups=[bots, slow]",
      "hibernate.after=5m", "policy.foreground.idle_after=3m", "stop_grace=7s", "importance=4",
      "watchdog=20s", "watchdog.launch=50s",
    ])
    #expect(worker.restart.condition == .onFailure && worker.readiness == .tcp(8080))
    #expect(worker.limits.memory == ByteCount(1 << 30) && worker.groups == ["bots", "slow"])
    #expect(worker.policy.hibernate.after == .seconds(300))
    #expect(worker.policy.foreground.idleAfter == .seconds(180))
    #expect(worker.policy.terminate.grace == .seconds(7) && worker.importance == 4)
    #expect(worker.watchdog == .seconds(20) && worker.policy.watchdog.launch == .seconds(50))
    #expect(worker.command == plain.command && worker.directory == "/srv")
    #expect(worker.settings.count == 10)
    #expect(try applied([]) == plain)
  }

  @Test func `Of two values for one key the last one applies`() throws {
    #expect(try applied(["importance=4", "importance=9"]).importance == 9)
  }

  @Test func `A mistake names the setting and what to write instead`() {
    for (arguments, message) in [
      (["restart"], "`restart`: a value is missing"),
      (["restrat=no"], "did you mean `restart`?"),
      (["restart=sometimes"], "`restart=sometimes`: "),
      (["importance=3", "readiness.tcp=x"], "`readiness.tcp=x`: "),
      (["command=x"], "give the command after `--`"),
      (["environment.A=b"], "use --env"),
      (["listen=8080"], "only a worker in dormouse.yaml can have `listen`"),
      (["restart=no", "restart.when=always"], "contradicts `restart=no`"),
      (["groups=[a"], "`groups=[a`: "),
      (["groups=a\nuser: root"], "line break"),
      (["=x"], "unknown key"), (["a..b=x"], "unknown key"),
      (["pressure.warning=never"], "`pressure.warning=never`: "),
    ] {
      #expect(error(arguments).contains(message), "\(arguments): \(error(arguments))")
    }
  }

  @Test func `Every key that is offered can be set`() {
    #expect(
      WorkerSettings.keys.contains("restart") && WorkerSettings.keys.contains("hibernate.after"))
    for key in WorkerSettings.keys {
      #expect(!error(["\(key)=?"]).contains("unknown key"), "\(key)")
    }
  }
}

@Suite("A worker that is added to a configuration's text") struct WorkerAdditionTests {
  private func worker(_ settings: [String] = []) throws -> WorkerAddition {
    var worker = WorkerAddition(
      name: "web", command: ["/bin/sh", "-c", "echo ${A}; exec sleep 9"],
      settings: try WorkerSettings(settings))
    worker.directory = "/srv/a $b"
    worker.environment = ["A": "x: y", "B": "$HOME"]
    (worker.importance, worker.notify) = (4, true)
    return worker
  }

  private func read(_ text: String) -> ParseResult<DaemonConfiguration> {
    ConfigurationFile.parse(
      text: text, file: "/etc/dormouse.yaml", library: PolicyLibrary(directories: []),
      environment: [:])
  }

  @Test(
    "The result has the worker as it was given, and all workers of before",
    arguments: [
      ("", 0), ("# mine\npolicy: ios-5", 0), ("policy: ios-5\nworkers:\n", 0),
      ("workers: {}  # none yet\n", 0), ("workers:  # all\n  one: { command: [true] }\n", 1),
      ("workers:\n    one:\n        command: |\n          sleep 1\n\n# end\npolicy: ios-5\n", 1),
      ("workers:\n\n  # first\n  one:\n    command: [x]\n  # two: later\n\npolicy: ios-5\n", 1),
    ])
  func added(before: String, count: Int) throws {
    let new = try worker(["restart=on-failure", "hibernate.after=5m", "hibernate.enabled=true"])
    let text = try #require(new.added(to: before))
    let result = read(text)
    let workers = try #require(result.value, "\(text)\n\(result.rendered)").workers
    #expect(result.errors.isEmpty, "\(text)\n\(result.rendered)")
    #expect(workers.count == count + 1, "\(text)")
    let web = try #require(workers.last)
    #expect(web.name == "web" && web.command == new.command && web.directory == "/srv/a $b")
    #expect(web.environment == ["A": "x: y", "B": "$HOME"])
    #expect(web.importance == 4 && web.notify && web.restart.condition == .onFailure)
    #expect(web.policy.hibernate.after == .seconds(300))
    // Every earlier line is there, in its order.
    var remainder = text.split(separator: "\n")[...]
    for line in before.split(separator: "\n") where !line.hasPrefix("workers: {}") {
      let index = try #require(remainder.firstIndex(of: line), "\(line) in \(text)")
      remainder = remainder[(index + 1)...]
    }
  }

  @Test func `It stands after the last entry, before the comments of the next key`() throws {
    var plain = WorkerAddition(name: "two", command: ["x"], settings: try WorkerSettings([]))
    plain.directory = nil
    let before = "workers:\n  one:\n    command: [y]  # c\n\n# Below\npolicy: ios-5\n"
    #expect(
      plain.added(to: before)
        == "workers:\n  one:\n    command: [y]  # c\n  two:\(WorkerAddition.mark)\n"
        + "    command: [x]\n\n# Below\npolicy: ios-5\n"
    )
  }

  @Test(
    "What was added is removed again, and all other lines keep their bytes",
    arguments: [
      "workers:\n", "workers:\n  one:\n    command: [y]  # c\n\n# Below\npolicy: ios-5\n",
      "# mine\nworkers:\n    a: { command: x }\n    # of no worker\n",
    ])
  func removed(before: String) throws {
    let new = try worker(["hibernate.after=5m"])
    let text = try #require(new.added(to: before))
    #expect(WorkerAddition.removed("web", from: text) == before)
    let other = WorkerAddition(name: "web2", command: ["x"], settings: try WorkerSettings([]))
    let both = try #require(other.added(to: text))
    #expect(WorkerAddition.removed("web", from: both) == other.added(to: before))
  }

  @Test(
    "A file whose lines end with CR LF keeps them, and has one `workers:`",
    arguments: [
      ("# mine\r\npolicy: ios-5\r\n", 0), ("workers: {}\r\n", 0),
      ("workers:\r\n  one:\r\n    command: [y]\r\n\r\n  two: { command: x }\r\n\r\n# end\r\n", 2),
    ])
  func carriageReturns(before: String, count: Int) throws {
    let text = try #require(try worker(["hibernate.after=5m"]).added(to: before))
    let result = read(text)
    #expect(result.value?.workers.count == count + 1, "\(text)\n\(result.rendered)")
    #expect(text.utf8.count { $0 == UInt8(ascii: "\n") } == text.count { $0 == "\r\n" })
    let remainder = try #require(WorkerAddition.removed("web", from: text))
    #expect(read(remainder).value?.workers.count == count, "\(remainder)")
    if count > 0 { #expect(remainder == before) }
  }

  @Test func `An entry that was written by hand isn't removed`() throws {
    #expect(WorkerAddition.removed("web", from: "workers:\n  web:\n    command: [x]\n") == nil)
    let text = try #require(try worker().added(to: ""))
    #expect(WorkerAddition.removed("we", from: text) == nil)
    let free = text.split(separator: "\n").map { $0.prefix { $0 != "#" } }.joined(separator: "\n")
    #expect(WorkerAddition.removed("web", from: free) == nil)
  }

  @Test func `Nothing is added to workers in braces`() throws {
    #expect(try worker().added(to: "workers: { one: { command: [x] } }\n") == nil)
  }
}
