import Foundation
import Testing

@testable import ContainerPlan
@testable import Containers

@Suite(
  "Containers of a runtime that a test makes up, adopted by a real daemon",
  .enabled(if: TestedPrograms.hasDormouse, "no dormouse: build the root package, or set DORMOUSE"))
struct WatchTests {
  private static func shape(
    _ id: String, _ process: Process, labels: [String: String] = ["dormouse.policy": "server"]
  ) -> FakeEngine.Shape {
    FakeEngine.Shape(id: id, name: id, labels: labels, pid: process.processIdentifier)
  }

  /// A runtime, a daemon, and the first processes of containers.
  private final class World {
    let daemon: AdoptingTestDaemon
    let engine: FakeEngine
    private(set) var processes: [Process] = []

    init() throws {
      daemon = try AdoptingTestDaemon()
      engine = try FakeEngine(socket: daemon.scratch.path + "/docker.sock")
    }

    func sleeper() throws -> Process {
      let process = try TestedPrograms.sleeper()
      processes.append(process)
      return process
    }

    func settings() -> WatchSettings { RunningWatch.settings(engine, daemon: daemon.socket) }

    deinit {
      for process in processes where process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  @Test("A container is adopted when it starts, and forgotten when it ends")
  func life() async throws {
    let world = try World()
    let watch = RunningWatch(world.settings())
    let isFollowed = try await eventually { world.engine.state.withLock { $0.opened } == 1 }
    #expect(isFollowed)
    let process = try world.sleeper()
    world.engine.set([Self.shape("web", process)])
    try await watch.log.wait(
      for: "web (docker web): adopted as web, pid \(process.processIdentifier): policy server")
    let worker = try #require(try world.daemon.workers().first)
    #expect(worker.name == "web" && worker.pid == process.processIdentifier)
    #expect(worker.policy == "server")
    kill(process.processIdentifier, SIGKILL)
    world.engine.set([], event: "die")
    try await watch.log.wait(for: "ended; the worker web is forgotten")
    #expect(try world.daemon.workers().isEmpty)
    try await watch.end()
  }

  @Test("A wrong label and a wrong policy are logged once, and the other containers are adopted")
  func wrongLabels() async throws {
    let world = try World()
    world.engine.set([
      Self.shape("a", try world.sleeper(), labels: ["dormouse.policy": "sever"]),
      Self.shape(
        "b", try world.sleeper(),
        labels: ["dormouse.policy": "server", "dormouse.hibernate.aftr": "5m"]),
      Self.shape("c", try world.sleeper()),
    ])
    let watch = RunningWatch(world.settings())
    try await watch.log.wait(for: "c (docker c): adopted as c")
    try await watch.log.wait(for: "b (docker b): label dormouse.hibernate.aftr=5m: ignored")
    try await watch.log.wait(for: "b (docker b): adopted as b")
    try await watch.log.wait(
      for: "a (docker a): not adopted: a isn't adopted: `policy=sever`: there is no policy")
    let lists = world.engine.state.withLock { $0.lists }
    world.engine.send("{\"Type\":\"container\",\"Action\":\"rename\"}\n")
    let isAsked = try await eventually { world.engine.state.withLock { $0.lists } > lists }
    #expect(isAsked)
    #expect(watch.log.count("sever") == 1 && watch.log.count("aftr") == 1, "\(watch.log.all)")
    #expect(try Set(world.daemon.workers().map(\.name)) == ["b", "c"])
    try await watch.end()
  }

  @Test("Labels of an image have no effect: a container is adopted for its own ones")
  func imageLabels() async throws {
    let world = try World()
    var foreign = Self.shape("foreign", try world.sleeper())
    foreign.imageLabels = foreign.labels
    var lost = Self.shape("lost", try world.sleeper())
    lost.imageLabels = nil
    var labelled = Self.shape(
      "own", try world.sleeper(), labels: ["dormouse.policy": "server", "dormouse.importance": "7"])
    labelled.imageLabels = ["dormouse.importance": "7"]
    world.engine.set([foreign, lost, labelled])
    let watch = RunningWatch(world.settings())
    try await watch.log.wait(for: "own (docker own): adopted as own")
    try await watch.log.wait(for: "foreign (docker foreign): labels that its image has as well")
    try await watch.log.wait(for: "lost (docker lost): not adopted: its image can't be read")
    try await watch.log.wait(for: "own (docker own): labels that its image has as well")
    #expect(try world.daemon.workers().map(\.name) == ["own"])
    #expect(watch.log.count("importance 7") == 0, "\(watch.log.all)")
    try await watch.end()
  }

  @Test("A process that has got the number of a container's ended process isn't adopted")
  func reusedNumber() async throws {
    let world = try World()
    let pods = MadeUpPods()
    // The list is the runtime's: "a" has ended since, and another process has its pid.
    let containers = try ["a", "b"].map { name in
      var container = Container(
        runtime: "containerd", id: name, name: name, labels: ["dormouse.policy": "server"],
        pid: try world.sleeper().processIdentifier)
      let start = try #require(ContainerWatch.startTime(container.pid))
      container.startTime = name == "a" ? start - 1 : start
      return container
    }
    pods.pods.withLock { $0 = containers }
    var settings = world.settings()
    settings.runtimes = [pods.runtime]
    let log = LogLines()
    let watch = ContainerWatch(settings, engines: [pods], reporter: nil) { log.add($0) }
    _ = await watch.poll()
    try await log.wait(for: "b (containerd b): adopted as b")
    #expect(log.count("adopted as a") == 0, "\(log.all)")
    #expect(try world.daemon.workers().map(\.name) == ["b"])
  }

  @Test(
    "Streams that end, garbage and errors of the runtime lose no worker, and no container twice")
  func disturbances() async throws {
    let world = try World()
    let first = try world.sleeper()
    world.engine.set([Self.shape("web", first)])
    let watch = RunningWatch(world.settings())
    try await watch.log.wait(for: "adopted as web")
    world.engine.send("not JSON\n{\"Type\":5}\n\n{\"Action\":\"exec_start\"}\n")
    world.engine.endStreams()
    try await watch.log.wait(for: "it has closed the connection")
    world.engine.state.withLock { $0.garbage = "<html>" }
    world.engine.send("{\"Type\":\"container\",\"Action\":\"start\"}\n")
    try await watch.log.wait(for: "its answer can't be read: /containers/json")
    world.engine.state.withLock {
      ($0.garbage, $0.status) = (#"{"message":"broken"}"#, .internalServerError)
    }
    try await watch.log.wait(for: "it has answered with status 500: broken")
    world.engine.state.withLock { ($0.garbage, $0.status) = (nil, .ok) }
    try world.engine.stop()
    try await watch.log.wait(for: "it can't be reached")
    #expect(try world.daemon.workers().map(\.name) == ["web"])
    let second = try world.sleeper()
    world.engine.set([Self.shape("web", first), Self.shape("db", second)], event: nil)
    try world.engine.start()
    try await watch.log.wait(for: "adopted as db")
    #expect(watch.log.count("adopted as") == 2, "\(watch.log.all)")
    try await watch.end()
  }

  @Test(
    "A daemon that is killed keeps the workers, and one that is stopped has them again afterwards")
  func daemons() async throws {
    let world = try World()
    let process = try world.sleeper()
    world.engine.set([Self.shape("web", process)])
    let watch = RunningWatch(world.settings())
    try await watch.log.wait(for: "adopted as web")
    try world.daemon.ask("hibernate", "web")
    try await world.daemon.waitForRecord(of: "web", state: "hibernated")
    world.daemon.crash()
    try await watch.log.wait(for: "no daemon")
    try world.daemon.start()
    try await watch.log.wait(for: "the daemon answers")
    // The next daemon wakes the worker: its tracer has ended.
    try await world.daemon.wait(for: "web", "foreground", "background")
    #expect(try world.daemon.workers().first?.policy == "server")
    #expect(watch.log.count("adopted as") == 1, "\(watch.log.all)")
    world.daemon.stop()
    try world.daemon.start()
    try await watch.log.wait(for: "adopted as web", count: 2)
    #expect(try world.daemon.workers().first?.pid == process.processIdentifier)
    try await watch.end()
    // Another watch finds the worker, and adopts nothing.
    let next = RunningWatch(world.settings())
    let lists = world.engine.state.withLock { $0.lists }
    let hasLooked = try await eventually { world.engine.state.withLock { $0.lists } > lists + 1 }
    #expect(hasLooked && next.log.all.isEmpty, "\(next.log.all)")
    try await next.end()
  }

  @Test("A worker that you release stays alone while its container runs")
  func released() async throws {
    let world = try World()
    world.engine.set([Self.shape("web", try world.sleeper())])
    let watch = RunningWatch(world.settings())
    try await watch.log.wait(for: "adopted as web")
    // The watch has seen that the daemon has the worker.
    try world.daemon.ask("release", "web")
    try await watch.log.wait(for: "web was released; it isn't adopted again until it is restarted")
    #expect(try world.daemon.workers().isEmpty)
    world.engine.set([Self.shape("web", try world.sleeper())])
    try await watch.log.wait(for: "adopted as web", count: 2)
    try await watch.end()
  }

  @Test("`--once --dry-run` says what it would do, and does nothing")
  func dryRun() async throws {
    let world = try World()
    // The process has a mount namespace of its own, as in a container.
    let process = try TestedPrograms.start("/usr/bin/unshare", ["-m", "sleep", "10000"]).process
    defer { kill(process.processIdentifier, SIGKILL) }
    world.engine.set([Self.shape("web", process), Self.shape("no", try world.sleeper())])
    let isApart = try await eventually {
      ContainerWatch.hasSeparateMounts(process.processIdentifier) == true
    }
    try #require(isApart || geteuid() != 0)
    let options = ["--once", "--docker", world.engine.socket, "--socket", world.daemon.socket]
    let dry = try TestedPrograms.run(TestedPrograms.containers, options + ["--dry-run"])
    #expect(dry.output.contains("no (docker no): not adopted: process"), "\(dry)")
    #expect(try dry.code == 1 && world.daemon.workers().isEmpty)
    if geteuid() != 0 { return }
    #expect(dry.output.contains("web (docker web): would be adopted as web"), "\(dry)")
    let real = try TestedPrograms.run(TestedPrograms.containers, options)
    #expect(real.output.contains("adopted as web"), "\(real)")
    let list = try TestedPrograms.run(
      TestedPrograms.containers,
      ["list", "--docker", world.engine.socket, "--socket", world.daemon.socket])
    #expect(list.code == 0 && list.output.contains("CONTAINER  RUNTIME"), "\(list)")
    #expect(list.output.contains("not adopted") && list.output.contains("server"), "\(list)")
  }
}
