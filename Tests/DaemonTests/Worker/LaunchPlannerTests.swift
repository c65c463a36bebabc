import Glibc
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("The plan of a launch") struct LaunchPlannerTests {
  private final class World {
    private let adapters: AdapterWorld
    let restarts: RestartWorld
    let planner: LaunchPlanner

    init(_ inheritance: Inheritance? = nil) throws {
      adapters = try AdapterWorld()
      restarts = try RestartWorld()
      let leftovers = Leftovers(
        records: adapters.services.records.store, logs: "/logs", processes: FakeProcesses())
      planner = LaunchPlanner(
        leftovers: inheritance == nil ? leftovers : nil, logs: "/logs",
        socket: "/run/control.sock", inheritance: inheritance, restarts: restarts.supervisor,
        services: adapters.services)
      restarts.add()
    }

    var said: [String] { adapters.logFile.lines(about: "web") }

    func worker(_ change: (inout WorkerConfiguration) -> Void = { _ in }) -> WorkerUnit {
      var configuration = WorkerConfiguration(
        name: "web", command: ["serve", "-v"], directory: "/srv", environment: ["MODE": "a"])
      change(&configuration)
      return WorkerUnit(
        configuration: configuration,
        environment: ["HOME": "/root", "MODE": "a", "XDG_DATA_HOME": "/root/.local"],
        isDeclared: true)
    }

    func plan(
      as account: Account? = nil, _ change: (inout WorkerConfiguration) -> Void = { _ in }
    ) throws -> LaunchPlan {
      try planner.plan(for: worker(change), as: account, in: nil, listeners: [])
    }
  }

  private let world: World

  init() throws { world = try World() }

  @Test func `A launch has the worker's command, directory, environment and log`() throws {
    let plan = try world.plan()
    #expect(plan.command == ["serve", "-v"] && plan.directory == "/srv")
    #expect(plan.environment["MODE"] == "a" && plan.environment["HOME"] == "/root")
    #expect(plan.logPath == "/logs/web.log" && !plan.isLogPathConfigured && plan.logKeep == 1)
    #expect(plan.mark == "/run/control.sock.workers/web")
    #expect(plan.fullEnvironment["DORMOUSE_RUN"] == plan.mark)
    #expect(plan.stored.isEmpty && plan.readinessChannel == nil && plan.account == nil)
  }

  @Test func `A launch's environment says how the last run ended, for any user`() throws {
    world.restarts.run("web")
    for account in [nil, try Account(user: "65534", group: "65534")] {
      let plan = try world.plan(as: account)
      #expect(plan.environment["DORMOUSE_LAST_EXIT_STATUS"] == "4", "\(plan.environment)")
    }
  }

  @Test func `A launch as another user has that user's home, or a configured one`() throws {
    let account = try Account(user: "65534", group: "65534")
    let plan = try world.plan(as: account)
    #expect(plan.account == account && plan.environment["HOME"] == account.home)
    #expect(plan.environment["SHELL"] == account.shell)
    #expect(plan.environment["XDG_DATA_HOME"] == nil && plan.environment["MODE"] == "a")
    let named = try world.plan(as: account) { $0.environment["HOME"] = "/srv/home" }
    #expect(named.environment["HOME"] == "/srv/home")
  }

  @Test(
    "An env_file is read at the launch with the user's rights, and `environment` overrides it",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func environmentFiles() throws {
    let scratch = try Scratch(["secret": "SECRET=1", "good": "MODE=b\nMORE=c"])
    chmod(scratch.path, 0o755)
    chmod("\(scratch.path)/secret", 0o600)
    let link = "\(scratch.path)/link"
    #expect(symlink("\(scratch.path)/secret", link) == 0)
    let account = try Account(user: "65534", group: "65534")
    func plan(_ name: String, as account: Account?) throws -> LaunchPlan {
      try world.plan(as: account) { $0.environmentFiles = ["\(scratch.path)/\(name)"] }
    }
    #expect(try plan("good", as: account).fileVariables?() == ["MORE": "c"])
    #expect(try plan("link", as: nil).fileVariables?() == ["SECRET": "1"])
    let refused = try plan("link", as: account)
    let error = #expect(throws: LaunchError.self) {
      _ = try refused.fileVariables?()
    }
    #expect(
      error?.reason.contains("`env_file` \(link), read as user ") == true
        && error?.reason.contains("Permission denied") == true, "\(String(describing: error))")
    var adopted = LaunchPlan(
      name: "web", command: ["serve"], directory: "/", environment: [:], logPath: "/web.log")
    world.planner.complete(
      adopted: &adopted, of: world.worker { $0.environmentFiles = ["\(scratch.path)/good"] })
    #expect(try adopted.fileVariables?() == ["MORE": "c"], "for commands that run for it")
  }

  @Test func `Root reads a log that the configuration names as the worker's user`() {
    let named = world.worker {
      $0.user = "secb"
      $0.output = WorkerOutput(file: "/srv/w.log")
    }
    #expect(world.planner.logUser(of: named) == "secb")
    #expect(world.planner.logUser(of: world.worker { $0.user = "secb" }) == nil)
  }

  @Test func `A launch writes to the log that the configuration names`() throws {
    let elsewhere = try world.plan {
      $0.output = WorkerOutput(file: "/var/log/web.log", maxSize: .megabytes(3), keep: 4)
    }
    #expect(elsewhere.logPath == "/var/log/web.log" && elsewhere.isLogPathConfigured)
    #expect(elsewhere.logLimit == 3 << 20 && elsewhere.logKeep == 4)
    #expect(try world.plan { $0.output = WorkerOutput(file: "/x.log") }.logLimit == .max)
    #expect(
      world.planner.logPath(of: world.worker { $0.output = WorkerOutput(file: "/x.log") })
        == "/x.log")
    #expect(world.planner.logPath(of: world.worker()) == "/logs/web.log")
  }

  @Test func `A launch has limits, a umask and a watchdog, where they can work`() throws {
    let plan = try world.plan {
      $0.umask = 0o027
      $0.limits.oomScore = 300
      $0.watchdog = .seconds(5)
      $0.readiness = .notificationDescriptor(5)
    }
    #expect(plan.umask == 0o027 && plan.oomScore == .value(300))
    #expect(plan.watchdog == nil, "it has no NOTIFY_SOCKET to say WATCHDOG=1 to")
    #expect(plan.readinessChannel?.number == 5)
  }

  @Test func `A wrapper's launch has what its caller gave it, and needs no user`() throws {
    let world = try World(Inheritance(firstArgument: 0))
    #expect(try world.plan().inheritance != nil)
    let query = world.planner.query(of: world.worker { $0.user = "no such user" })
    let terms = try query.perform().get()
    #expect(terms.account == nil && terms.cgroup == nil)
  }

  @Test func `An adopted worker's memory limit isn't enforced without a cgroup`() throws {
    var plan = try world.plan()
    world.planner.complete(
      adopted: &plan, of: world.worker { $0.limits.memory = .megabytes(5) })
    #expect(world.said.count == 1)
    #expect(world.said[0].contains("is not enforced: it has no cgroup of its own"))
  }

  @Test func `A launch doesn't rename a log that another worker may have open`() throws {
    let output = WorkerOutput(file: "/var/log/web.log", maxSize: .megabytes(3))
    var other = WorkerConfiguration(
      name: "web-2", command: ["serve"], directory: "/srv", environment: [:])
    other.output = output
    let worker = WorkerUnit(configuration: other, environment: [:], isDeclared: true)
    world.restarts.workers[worker.id] = worker
    #expect(try world.plan { $0.output = output }.logLimit == .max)
    other.output.file = "/var/log/other.log"
    worker.configuration = other
    #expect(try world.plan { $0.output = output }.logLimit == 3 << 20)
    // Each worker has a log of its own in the daemon's directory.
    worker.configuration.output = WorkerOutput(maxSize: .megabytes(3))
    #expect(
      try world.plan { $0.output = WorkerOutput(maxSize: .megabytes(3)) }.logLimit == 3 << 20)
  }

  @Test func `An adopted worker keeps the log that it was launched with`() throws {
    var plan = LaunchPlan(
      name: "web", command: ["serve"], directory: "/", environment: [:], logPath: "/old/web.log")
    world.planner.complete(
      adopted: &plan,
      of: world.worker {
        $0.output = WorkerOutput(file: "/new/web.log")
        $0.umask = 0o077
      })
    #expect(plan.logPath == "/old/web.log" && plan.isLogPathConfigured && plan.umask == 0o077)
  }
}
