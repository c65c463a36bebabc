import Foundation
import Synchronization
import Testing

@testable import ContainerPlan
@testable import Containers
@testable import KubernetesAPI
@testable import PodReports

/// The pods of a test's own runtime, which only has lists of them.
final class MadeUpPods: RuntimeClient {
  let runtime = Runtime(name: "containerd", socket: "/nowhere", interface: .cri)
  let pods = Mutex<[Container]>([])

  func containers() async throws(EngineError) -> [Container] { pods.withLock { $0 } }

  func followEvents(
    opened: @escaping @Sendable () async -> Void, changed: @escaping @Sendable () async -> Void
  ) async throws(EngineError) {
    await opened()
    while !Task.isCancelled {
      // If the task is cancelled, the loop ends.
      try? await Task.sleep(for: .milliseconds(200))
      await changed()
    }
    throw .closed
  }
}

@Suite(
  "Pods under a real daemon, reported to a Kubernetes API that a test makes up",
  .enabled(if: TestedPrograms.hasDormouse, "no dormouse: build the root package, or set DORMOUSE"))
struct PodReportTests {
  private final class World {
    let daemon: AdoptingTestDaemon
    let server: FakeKubernetes
    let running: RunningReporter
    let process: Process
    let log = LogLines()
    private let task: Task<Void, Never>

    init(labels: [String: String] = ["dormouse.policy": "server"]) throws {
      daemon = try AdoptingTestDaemon()
      server = try FakeKubernetes()
      server.state.withLock {
        $0.cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u1", requests: ["web": "100Mi"])
      }
      process = try TestedPrograms.sleeper()
      running = try RunningReporter(KubernetesAccess(url: server.url), runs: false)
      var container = Container(
        runtime: "containerd", id: "c1", name: "shop.web.web", labels: labels,
        pid: process.processIdentifier)
      container.startTime = ContainerWatch.startTime(container.pid)
      container.pod = "sandbox"
      container.member = PodMember(namespace: "shop", pod: "web", uid: "u1", container: "web")
      let pods = MadeUpPods()
      pods.pods.withLock { [container] in $0 = [container] }
      var settings = WatchSettings(runtimes: [pods.runtime], socket: daemon.socket)
      settings.daemonInterval = .milliseconds(300)
      settings.isContained = { kill($0, 0) == 0 ? true : nil }
      let watch = ContainerWatch(settings, engines: [pods], reporter: running.reporter) {
        [log] in log.add($0)
      }
      task = Task { await watch.run() }
    }

    func message(_ reason: String) async throws -> String {
      var text: String?
      let isThere = try await eventually {
        text = server.cluster.events(reason).first?["message"]?.text
        return text != nil
      }
      if !isThere { throw Failure("no event \(reason): \(server.cluster.events) \(log.all)") }
      return text ?? ""
    }

    /// - Parameter statuses: The statuses to wait for; `-` means no condition.
    func wait(status statuses: String..., request: String) async throws {
      let isThere = try await eventually {
        statuses.contains(server.cluster.status("shop/web") ?? "-")
          && server.cluster.request("shop/web", "web") == request
      }
      if !isThere { throw Failure("not \(statuses) \(request): \(server.cluster) \(log.all)") }
    }

    func end() async throws {
      task.cancel()
      await task.value
      try await running.end()
      kill(process.processIdentifier, SIGKILL)
    }
  }

  @Test("A container's adoption, sleep and wake are in its pod's events, condition and requests")
  func life() async throws {
    let world = try World()
    #expect(
      try await world.message("Adopted")
        == "Container web is managed by Dormouse: policy server")
    try await world.wait(status: "False", request: "100Mi")
    try await world.daemon.hibernate("shop.web.web")
    try await world.wait(status: "True", request: "4Mi")
    let asleep = try await world.message("Hibernated")
    #expect(asleep.hasPrefix("Container web is hibernated") && asleep.contains(" → "), "\(asleep)")
    try world.daemon.ask("wake", "shop.web.web")
    try await world.wait(status: "False", request: "100Mi")
    let awake = try await world.message("Woken")
    #expect(awake.hasPrefix("Container web is awake: ") && awake.contains("ms"), "\(awake)")
    try world.daemon.ask("release", "shop.web.web")
    try await world.wait(status: "-", request: "100Mi")
    _ = try await world.message("Released")
    try await world.end()
  }

  @Test("A refused adoption is a warning in the pod's events, and the pod gets no condition")
  func refused() async throws {
    let world = try World(labels: ["dormouse.policy": "sever"])
    let text = try await world.message("NotAdopted")
    #expect(text.contains("there is no policy"), "\(text)")
    #expect(world.server.cluster.condition("shop/web") == nil)
    #expect(world.server.cluster.events("NotAdopted").first?["type"]?.text == "Warning")
    try await world.end()
  }

  @Test("A daemon that ends restores requests, and one that is killed makes the condition unknown")
  func daemonEnds() async throws {
    let world = try World()
    try await world.wait(status: "False", request: "100Mi")
    try await world.daemon.hibernate("shop.web.web")
    try await world.wait(status: "True", request: "4Mi")
    try await world.daemon.waitForRecord(of: "shop.web.web", state: "hibernated")
    world.daemon.crash()
    try await world.wait(status: "Unknown", request: "100Mi")
    try world.daemon.start()
    // The next daemon wakes the worker.
    try await world.wait(status: "False", request: "100Mi")
    try await world.daemon.hibernate("shop.web.web")
    try await world.wait(status: "True", request: "4Mi")
    world.daemon.stop()
    // The daemon's last events may report that the worker was released.
    try await world.wait(status: "Unknown", "-", request: "100Mi")
    try await world.end()
    #expect(world.server.cluster.condition("shop/web") == nil)
  }
}
