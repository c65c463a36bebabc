import Glibc
import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `A configuration of several files` {
  private static let main = """
    policy: ios-5
    policy_overrides:
      memory: { budget: 96MB }
      hibernate: { after: 20s }
    workers:
      web: { command: sleep 1, policy: { hibernate: { max_footprint: 64MB } } }
    """

  @Test
  func `The main file is read first, and then the files of conf.d in the order of their names`()
    throws
  {
    let directory = try Scratch([
      "dormouse.yaml": Self.main,
      "conf.d/20-b.yaml": "workers: { b: { command: run, directory: data } }",
      "conf.d/10-a.yml": "workers: { a: { command: run } }\nsocket: /run/d.sock",
      "conf.d/30-overrides.yaml": "policy_overrides: { hibernate: { cooldown: 5s } }",
      "conf.d/.hidden.yaml": "nonsense: 1", "conf.d/notes.txt": "nonsense",
      "conf.d/old.yaml~": "nonsense: 1",
    ])
    for name in ["", "dormouse.yaml"] {
      let result = directory.load(name)
      #expect(result.diagnostics.isEmpty, "\(result.rendered)")
      let read = try #require(result.value)
      #expect(read.workers.map(\.name) == ["web", "a", "b"])
      #expect(read.socket == "/run/d.sock")
      #expect(read.policy.memory == .device(.megabytes(96)))
      #expect(read.policy.hibernate.after == .seconds(20))
      #expect(read.policy.hibernate.cooldown == .seconds(5))
      // Paths are relative to the main file, whichever file contains them.
      #expect(read.workers[2].directory == "\(directory.path)/data")
    }
  }

  @Test func `All of the configuration may be in conf.d`() throws {
    let directory = try Scratch(["conf.d/a.yaml": "workers: { a: { command: run } }"])
    #expect(directory.load().value?.workers.map(\.name) == ["a"])
    #expect(directory.load("dormouse.yaml").value?.workers.map(\.name) == ["a"])
    #expect(ConfigurationFiles.exist(at: directory.path))
    #expect(try !ConfigurationFiles.exist(at: Scratch().path))
  }

  @Test(arguments: [
    ["dormouse.yaml": "state_directory: ${DATA}/images\nworkers: { web: { comand: run } }"],
    ["dormouse.yaml": "policy: no-such-policy", "conf.d/a.yaml": "state_directory: /data/images"],
    ["dormouse.yaml": "workers: [", "conf.d/a.yaml": "state_directory: /data/images"],
  ])
  func `The state directory is read although the configuration has errors`(
    files: [String: String]
  ) throws {
    let directory = try Scratch(files)
    #expect(directory.load().value == nil)
    for name in ["", "/dormouse.yaml"] {
      #expect(
        ConfigurationFile.stateDirectory(
          path: directory.path + name, environment: ["DATA": "/data"]) == "/data/images")
    }
  }

  @Test func `A relative state directory is below that of the configuration, and may be absent`()
    throws
  {
    let directory = try Scratch(["dormouse.yaml": "state_directory: state"])
    func read(_ path: String) -> String? {
      ConfigurationFile.stateDirectory(path: path, environment: [:])
    }
    #expect(read("\(directory.path)/dormouse.yaml") == "\(directory.path)/state")
    #expect(try read(Scratch().path) == nil)
    #expect(try read(Scratch(["dormouse.yaml": "policy: standard"]).path) == nil)
    #expect(try read(Scratch(["dormouse.yaml": "state_directory: ${NONE}/x"]).path) == nil)
  }

  @Test("A main file or a conf.d that is a link to nothing is an error, and removes no workers")
  func linksToNothing() throws {
    let directory = try Scratch(["conf.d/a.yaml": "workers: { a: { command: run } }"])
    #expect(symlink("gone/dormouse.yaml", "\(directory.path)/dormouse.yaml") == 0)
    for name in ["", "dormouse.yaml"] {
      let result = directory.load(name)
      #expect(result.value == nil)
      let text = directory.rendered(result)
      #expect(text.contains("dormouse.yaml: error: the file can't be opened"), "\(text)")
    }
    let other = try Scratch(["dormouse.yaml": Self.main])
    #expect(symlink("gone", "\(other.path)/conf.d") == 0)
    let text = other.rendered(other.load())
    #expect(text.hasPrefix("conf.d: error: the file can't be listed"), "\(text)")
  }

  @Test func `The directory conf.d isn't read if the main file isn't called dormouse.yaml`()
    throws
  {
    let directory = try Scratch([
      "other.yaml": Self.main, "conf.d/a.yaml": "workers: { a: { command: run } }",
    ])
    #expect(directory.load("other.yaml").value?.workers.map(\.name) == ["web"])
  }

  @Test func `A key that is in two files is an error that names both positions`() throws {
    let directory = try Scratch([
      "dormouse.yaml": Self.main,
      "conf.d/a.yaml": """
      policy: server
      workers:
        web: { command: other }
      """,
      "conf.d/b.yaml": "policy_overrides:\n  hibernate:\n    after: 10s\n    cooldown: 1s\n",
    ])
    #expect(
      directory.rendered(directory.load()) == """
        conf.d/a.yaml:1:1: error: `policy` is given twice; the first is dormouse.yaml:1:1
        policy: server
        ^
        help: leave one of them out
        conf.d/a.yaml:3:3: error: the worker `web` is declared twice; the first is dormouse.yaml:6:3
          web: { command: other }
          ^
        help: give one of them another name, or leave it out
        conf.d/b.yaml:3:5: error: `hibernate.after` is overridden twice; the first is \
        dormouse.yaml:4:16
            after: 10s
            ^
        help: leave one of them out
        """,
      "\(directory.rendered(directory.load()))")
  }

  @Test func `The thresholds, dependencies and sockets of all files are checked together`() throws {
    let directory = try Scratch([
      "dormouse.yaml": """
      policy_overrides: { pressure: { warning: { available_below: 8% } } }
      workers: { web: { command: run, depends_on: [db], listen: 8080 } }
      """,
      // Without the other file, the first file's threshold would be under that of `urgent`.
      "conf.d/a.yaml": """
      policy_overrides: { pressure: { urgent: { available_below: 7% } } }
      workers: { db: { command: run, listen: { sql: "*:8080" } } }
      """,
    ])
    let result = directory.load()
    #expect(
      result.errors.map(\.message).map { $0.replacing("\(directory.path)/", with: "") } == [
        "`0.0.0.0:8080` is taken by `web`, at dormouse.yaml:2:59"
      ])
  }

  @Test func `A configuration with an unreadable file has no value and one error`() throws {
    let directory = try Scratch([
      "dormouse.yaml": "workers: { web: { command: run, depends_on: [db] } }",
      "conf.d/a.yaml": "workers: [",
    ])
    let result = directory.load()
    #expect(result.value == nil)
    // The worker on which `web` depends may be in the file that can't be read.
    #expect(result.errors.count == 1, "\(result.rendered)")
  }

  @Test func `The configuration knows for every value the file and line that it comes from`() throws
  {
    let directory = try Scratch([
      "dormouse.yaml": Self.main,
      "conf.d/b.yaml": "policy_overrides: { pressure: { warning: { available_below: 20% } } }",
    ])
    let read = try #require(directory.load().value)
    func origin(_ path: String, _ worker: String? = nil) -> String {
      let origin = read.origins.origin(of: path, worker: worker)
      return origin.layer.rawValue + " " + origin.text.replacing("\(directory.path)/", with: "")
    }
    #expect(origin("memory.budget") == "overrides dormouse.yaml:3")
    #expect(origin("hibernate.after", "web") == "overrides dormouse.yaml:4")
    #expect(origin("hibernate.max_footprint", "web") == "worker dormouse.yaml:6")
    #expect(origin("hibernate.max_footprint").hasPrefix("policy \(shippedDirectory)/ios-5.yaml:"))
    #expect(origin("pressure.warning.stall.some") == "overrides conf.d/b.yaml:1")
    #expect(origin("no.such.key") == "default default")
    let command = read.origins.origin(ofWorker: "web", key: "command")
    #expect(command.position == Position(line: 6, column: 10))

    let web = try #require(read.workers.first { $0.name == "web" })
    let values = EffectivePolicy(web.policy, origins: read.origins, worker: "web").values
    #expect(values.map(\.path) == PolicyFile.values(of: LifecyclePolicy()).map(\.path))
    #expect(values.first { $0.path == "hibernate.max_footprint" }?.text == "64MB")
    let empty = try #require(configuration("").value)
    let defaults = EffectivePolicy(empty.policy, origins: empty.origins).values
    #expect(defaults.allSatisfy { $0.origin == .byDefault })
  }
}
