import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("What a worker of another supervisor is for the daemon") struct ExternalsOfDaemonTests {
  private let world: AdapterWorld
  private let host: ExternalsOfDaemon

  init() throws {
    world = try AdapterWorld()
    host = ExternalsOfDaemon(
      .init(
        services: world.services, state: world.state, workers: world.workers, phase: world.phase,
        requests: world.requests, wrappers: world.wrappers, restarts: world.restarts,
        processes: world.processes, ends: world.ends, supervision: world.supervision,
        recordWriter: world.recordWriter, declared: world.declared,
        listening: world.listening,
        configuration: ConfigurationInForce(DaemonConfiguration())))
  }

  private func found() throws -> ExternalProcess {
    let root = try ProcessStat.read(getpid())
    return ExternalProcess(root: root, tree: ProcessTree(processes: [root]), cgroup: nil)
  }

  @Test("A process that belongs to a worker has that worker as its owner")
  func owner() throws {
    #expect(host.owner(of: getpid()) == nil)
    try world.add("db", .terminated)
    try world.add("web")
    #expect(host.owner(of: getpid()) == WorkerID("web"))
    #expect(host.owner(of: 1) == nil)
  }

  @Test("An adopted process is watched for its end, and let go with everything that is held of it")
  func attached() throws {
    let runtime = try world.add("web", .terminated)
    try host.attach(try found(), to: runtime)
    #expect(runtime.process?.identity.pid == getpid() && runtime.exitWatch != nil)
    #expect(runtime.process?.plan.logPath == world.state.log(of: "web"))
    host.save(runtime, .background)
    world.services.records.drain()
    #expect(world.services.records.store.contains("web"))
    host.letGo(of: runtime)
    world.services.records.drain()
    #expect(runtime.process == nil && runtime.sleep == nil)
    #expect(!world.services.records.store.contains("web"))
    #expect(world.notes.all == [] && world.workers[runtime.id] === runtime)
  }

  @Test("A process that ended before it could be adopted is an error, and the worker has none")
  func vanished() throws {
    let runtime = try world.add("web", .terminated)
    var found = try found()
    found.root.startTime = 1
    #expect(throws: (any Error).self) { try host.attach(found, to: runtime) }
    #expect(runtime.process == nil && runtime.exitWatch == nil)
  }

  @Test("Only a worker with a cgroup can be represented by another process")
  func successor() throws {
    #expect(host.attachSuccessor(to: try world.add("web")) == nil)
    #expect(host.attachSuccessor(to: try world.add("db", .terminated)) == nil)
  }

  @Test("A process is examined on another thread, and a refusal comes back with its reason")
  func examined() throws {
    var texts: [String] = []
    for wanted in [
      AdoptionSpecification(pid: getpid()), AdoptionSpecification(pid: 1), AdoptionSpecification(),
    ] {
      host.examine(wanted, as: "web", within: .seconds(60)) { outcome in
        guard case .done(.failure(let refusal)) = outcome else {
          texts.append("\(outcome)")
          return
        }
        texts.append(refusal.text)
      }
      let count = texts.count
      try world.turn { texts.count > count }
    }
    #expect(texts.count == 3 && texts[0].contains("is the daemon or one of its parents"))
    #expect(texts[1] == "pid 1 can't be adopted")
    #expect(texts[2] == "`adopt` needs either a pid or a cgroup")
  }

  @Test("A policy that a request for adoption names is looked up before any process is examined")
  func named() throws {
    var texts: [String] = []
    let wanted = AdoptionSpecification(pid: 1, policy: "sever")
    host.examine(wanted, as: "web", within: .seconds(60)) { outcome in
      guard case .done(.failure(let refusal)) = outcome, refusal.isMalformed else { return }
      texts.append(refusal.text)
    }
    try world.turn { !texts.isEmpty }
    #expect(
      texts[0].hasPrefix("web isn't adopted: `policy=sever`: there is no policy named"), "\(texts)")
  }

  @Test("No process is adopted while the daemon ends, nor under a wrapper's name")
  func refusals() throws {
    #expect(!host.isClosing && !host.isWrapped(WorkerID("tool")))
    world.wrapped.processes[ClientID(number: 1)] = 77
    _ = world.wrappers.register(WrapperWorld.report("tool"), from: ClientID(number: 1))
    #expect(host.isWrapped(WorkerID("tool")))
    world.ending.end()
    #expect(host.isClosing)
  }

  @Test(
    "A worker that the configuration declares comes back when the adopted one of its name is released"
  )
  func introduced() throws {
    host.introduce(.forTest("web") { $0.environment = ["PORT": "80"] })
    let runtime = try #require(world.workers[WorkerID("web")])
    #expect(runtime.isDeclared && runtime.environment == ["HOME": "/root", "PORT": "80"])
    #expect(world.driver.state.state(of: runtime.id) == .terminated)
    host.remove(runtime.id)
    #expect(world.workers[runtime.id] == nil)
  }
}

@Suite("Processes that are refused before they are adopted") struct ExternalProcessTests {
  private func refusal(_ wanted: AdoptionSpecification) -> AdoptionRefusal? {
    do throws(AdoptionRefusal) {
      _ = try ExternalProcess.examine(wanted)
      return nil
    } catch { return error }
  }

  @Test("A request with neither a pid nor a cgroup, or with both, makes no sense")
  func malformed() {
    for wanted in [
      AdoptionSpecification(), AdoptionSpecification(pid: getpid(), cgroup: "system.slice"),
    ] {
      #expect(refusal(wanted)?.isMalformed == true)
    }
  }

  @Test("The system's first process, and numbers that are none, are refused")
  func numbers() {
    for pid: Int32 in [1, 0, -1, .min] {
      let refusal = refusal(AdoptionSpecification(pid: pid))
      #expect(refusal?.text == "pid \(pid) can't be adopted" && refusal?.isMalformed == false)
    }
    // The kernel's greatest number is 2²² − 1.
    #expect(refusal(AdoptionSpecification(pid: 1 << 22))?.text == "there is no process 4194304")
  }

  @Test("A process that has got the number of the one that was meant is refused")
  func startTime() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let child = try spawn(
      SpawnRequest(
        path: "/bin/sleep", arguments: ["sleep", "1000"], environment: [:], directory: "/",
        input: null.raw, output: null.raw, error: null.raw, cgroup: nil))
    let (pid, start) = (child.pid, child.startTime)
    defer {
      sendSignal(SIGKILL, to: pid)
      waitpid(pid, nil, 0)
    }
    let later = AdoptionSpecification(pid: pid, startTime: start + 1)
    #expect(refusal(later)?.text.contains("was started at another time") == true)
    for start in [start, nil] {
      #expect(refusal(AdoptionSpecification(pid: pid, startTime: start)) == nil)
    }
  }

  @Test("The daemon itself, and what it lives in, never sleep")
  func own() {
    for pid in [getpid(), getppid()] where pid > 1 {
      #expect(
        refusal(AdoptionSpecification(pid: pid))?.text
          .contains("is the daemon or one of its parents") == true)
    }
  }

  @Test("A cgroup that doesn't exist is refused with its name")
  func noGroup() {
    let text = refusal(AdoptionSpecification(cgroup: "/no/such/group.here"))?.text
    #expect(text?.isEmpty == false)
  }
}
