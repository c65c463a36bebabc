import Foundation
import Testing

@testable import CRI
@testable import Containers

extension RuntimeSuites {
  @Suite(
    "Pods of a real containerd",
    .enabled(if: LocalContainerd.obstacle == nil, "\(LocalContainerd.obstacle ?? "")"))
  struct PodTests {
    /// A daemon, containerd, and `dormouse-containers` between them.
    private final class World {
      let daemon: AdoptingTestDaemon
      let containerd: LocalContainerd
      let watch: RunningWatch

      init() throws {
        daemon = try AdoptingTestDaemon()
        containerd = try LocalContainerd()
        try Data(RuntimeWorld.server.utf8).write(
          to: URL(filePath: "\(containerd.scratch.path)/server.py"))
        var settings = WatchSettings(
          runtimes: [Runtime(name: "containerd", socket: containerd.socket, interface: .cri)],
          socket: daemon.socket)
        settings.daemonInterval = .milliseconds(300)
        settings.retry = RetryDelays(first: .milliseconds(50), longest: .milliseconds(500))
        watch = RunningWatch(settings)
      }

      /// Starts a server in a container, and returns the port on which it listens then.
      func startServer(
        _ name: String, of pod: LocalContainerd.Pod, attempt: UInt64 = 0
      ) async throws -> (id: String, port: UInt16) {
        let port = try FreePort.find()
        let id = try await containerd.startContainer(
          name, of: pod, attempt: attempt,
          ["/usr/bin/python3", "/test/server.py", "\(port)", "127.0.0.1"])
        let isListening = try await eventually { (try? LineConnection(port: port)) != nil }
        if !isListening { throw Failure("\(name) doesn't listen on \(port)") }
        return (id, port)
      }
    }

    private static let annotations = [
      "dormouse.io/policy": "server", "dormouse.io/background.suspend_after": "never",
      "dormouse.io/hibernate.after": "never", "dormouse.io/hibernate.cooldown": "0s",
    ]

    @Test(
      "The containers of an annotated pod sleep one by one and wake together, without the pause"
    )
    func together() async throws {
      let world = try World()
      let plain = try await world.containerd.startPod("plain", annotations: ["other.io/x": "y"])
      _ = try await world.startServer("web", of: plain)
      let pod = try await world.containerd.startPod("shop", annotations: Self.annotations)
      let web = try await world.startServer("web", of: pod)
      let db = try await world.startServer("db", of: pod)
      try await world.watch.log.wait(for: "adopted as default.shop.web")
      try await world.watch.log.wait(for: "adopted as default.shop.db")
      #expect(
        try Set(world.daemon.workers().map(\.name)) == ["default.shop.web", "default.shop.db"])
      let old = try LineConnection(port: db.port)
      let first = try old.ask()
      for name in ["default.shop.web", "default.shop.db"] {
        try await world.daemon.hibernate(name)
      }
      #expect(try world.daemon.workers().allSatisfy { $0.footprint < 1 << 20 })
      // The kubelet's exec probes run a program, and the container sleeps on.
      #expect(
        try await world.containerd.execute(["/bin/echo", "alive"], in: web.id) == "alive\n")
      #expect(try world.daemon.state(of: "default.shop.web") == "hibernated")
      #expect(try LineConnection(port: web.port).ask().hasPrefix("1 "))
      try await world.daemon.wait(for: "default.shop.db", "foreground", "background")
      #expect(try old.ask() == "2" + first.dropFirst(), "\(world.daemon.logText)")
      try await world.watch.end()
    }

    @Test("A container that is stopped asleep ends by its handler, and the next one has its name")
    func restarted() async throws {
      let world = try World()
      let pod = try await world.containerd.startPod("shop", annotations: Self.annotations)
      for attempt in UInt64(0)..<2 {
        let web = try await world.startServer("web", of: pod, attempt: attempt)
        try await world.watch.log.wait(
          for: "adopted as default.shop.web", count: Int(attempt) + 1)
        try await world.daemon.hibernate("default.shop.web")
        try await world.containerd.stop(web.id, within: 30)
        // The code isn't 137, so the process wasn't killed.
        #expect(try await world.containerd.exitCode(of: web.id) == 0)
        try await world.watch.log.wait(
          for: "ended; the worker default.shop.web is forgotten", count: Int(attempt) + 1)
      }
      try await world.watch.end()
    }

    @Test("A restarted containerd loses no worker, and finds no container twice")
    func runtimeRestarted() async throws {
      let world = try World()
      let pod = try await world.containerd.startPod("shop", annotations: Self.annotations)
      let web = try await world.startServer("web", of: pod)
      try await world.watch.log.wait(for: "adopted as default.shop.web")
      let old = try LineConnection(port: web.port)
      let first = try old.ask()
      try await world.daemon.hibernate("default.shop.web")
      world.containerd.stopService()
      try await world.watch.log.wait(for: "containerd at \(world.containerd.socket): it")
      #expect(try world.daemon.state(of: "default.shop.web") == "hibernated")
      try world.containerd.startService()
      try await world.watch.log.wait(for: "its events are followed")
      #expect(try old.ask() == "2" + first.dropFirst())
      #expect(world.watch.log.count("adopted as") == 1, "\(world.watch.log.all)")
      try await world.watch.end()
    }

    @Test("A wrong annotation is logged with its container, in the words of its author")
    func wrong() async throws {
      let world = try World()
      let pod = try await world.containerd.startPod(
        "shop",
        annotations: Self.annotations.merging([
          "web.dormouse.io/mode": "off", "dormouse.io/hibernate.aftr": "5m",
        ]) { $1 })
      _ = try await world.startServer("web", of: pod)
      try await world.watch.log.wait(for: "annotation dormouse.io/mode: off: decisions about it")
      try await world.watch.log.wait(for: "annotation dormouse.io/hibernate.aftr: 5m: ignored")
      try await world.watch.log.wait(for: "adopted as default.shop.web")
      try await world.watch.end()
    }
  }
}

enum FreePort {
  /// Returns a port that is free now; another program may use it before.
  static func find() throws -> UInt16 {
    let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(file) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(file, $0, length) == 0 ? getsockname(file, $0, &length) : -1
      }
    }
    guard result == 0 else { throw Failure("no free port: errno \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }
}
