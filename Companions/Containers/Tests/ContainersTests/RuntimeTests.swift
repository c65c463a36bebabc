import Foundation
import Testing

@testable import Containers

/// The tests run one after another: each starts a runtime.
@Suite(
  .serialized,
  .enabled(
    if: !RuntimeKind.usable.isEmpty,
    "\(RuntimeKind.obstacles.values.sorted().joined(separator: "; "))"))
enum RuntimeSuites {}

extension RuntimeSuites {
  @Suite("Containers of a real Docker and a real Podman") struct RuntimeTests {
    @Test(
      "A hibernated container frees its memory, keeps its connections, and wakes by its port",
      arguments: RuntimeKind.usable)
    func sleep(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let port = try await world.startServer("web", ["--memory", "200m"])
      try await world.watch.log.wait(for: "adopted as web")
      #expect(try world.daemon.workers().first?.policy == "server")
      let old = try LineConnection(port: port)
      let first = try old.ask()
      // The container may have been measured at its adoption, before it had its memory.
      let isFilled = try await eventually {
        try world.daemon.workers().first?.footprint ?? 0 > 20 << 20
      }
      let footprint = try world.daemon.workers().first?.footprint ?? 0
      #expect(isFilled, "\(footprint)")
      let charge = try world.runtime.charge(of: "web")
      try await world.hibernate("web")
      let asleep = try world.daemon.workers().first?.footprint ?? .max
      #expect(asleep < 1 << 20, "\(footprint) → \(asleep)")
      if let charge {
        let after = try #require(try world.runtime.charge(of: "web"))
        #expect(after < charge - (19 << 20), "\(charge) → \(after)")
      }
      let second = try old.ask()
      #expect(first.hasPrefix("1 ") && second == "2" + first.dropFirst())
      try await world.hibernate("web")
      #expect(try LineConnection(port: port).ask() == "3" + first.dropFirst())
      try await world.watch.end()
    }

    @Test(
      "Neither a killed daemon nor a restarted runtime's daemon loses a hibernated container",
      arguments: RuntimeKind.usable)
    func restarts(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let port = try await world.startServer("web")
      try await world.watch.log.wait(for: "adopted as web")
      let old = try LineConnection(port: port)
      let first = try old.ask()
      try await world.hibernate("web")
      try await world.daemon.waitForRecord(of: "web", state: "hibernated")
      world.daemon.crash()
      try world.daemon.start()
      // The next daemon wakes the worker: its tracer has ended.
      try await world.daemon.wait(for: "web", "foreground", "background")
      #expect(try world.daemon.workers().first?.policy == "server")
      try await world.hibernate("web")
      world.runtime.stopService()
      try await world.watch.log.wait(for: "\(kind) at \(world.runtime.socket): it")
      // Docker's own proxy ends with it. The end of a connection through the proxy wakes the
      // container.
      if kind != .docker { #expect(try world.state("web") == "hibernated") }
      try world.runtime.startService()
      try await world.watch.log.wait(for: "its events are followed")
      let connection = kind == .docker ? try LineConnection(port: port) : old
      #expect(try connection.ask() == "2" + first.dropFirst())
      #expect(world.watch.log.count("adopted as web") == 1, "\(world.watch.log.all)")
      try await world.watch.end()
    }

    private static let restrictions = [
      ["--user=33:33"], ["--pid=host"], ["--ipc=host"], ["--cgroupns=private"], ["--read-only"],
      ["--cap-drop=all", "--security-opt=no-new-privileges"],
      ["--security-opt=seccomp=unconfined"], ["--privileged"],
    ]
    private static let podmans = [["--userns=auto"], ["--uidmap=0:200000:65536"], ["--init"]]

    /// Returns whether the failure is for lack of something on this machine: a range of users for
    /// containers in /etc/subuid, catatonit, or all capabilities.
    private static func isMachines(_ failure: Failure) -> Bool {
      ["subuid", "user \"containers\"", "container-init binary", "unable to apply caps"].contains {
        failure.description.contains($0)
      }
    }

    @Test(
      "A container hibernates and answers in each kind of namespace and of restriction",
      arguments: RuntimeKind.usable)
    func restricted(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let all = Self.restrictions + (kind == .podman ? Self.podmans : [])
      for (number, options) in all.enumerated() {
        let name = "web\(number)"
        let port: UInt16
        do { port = try await world.startServer(name, options) } catch let failure as Failure
          where Self.isMachines(failure)
        { continue }
        try await world.watch.log.wait(for: "adopted as \(name)")
        let old = try LineConnection(port: port)
        let first = try old.ask()
        try await world.hibernate(name)
        #expect(try old.ask() == "2" + first.dropFirst(), "\(options): \(world.daemon.logText)")
      }
      try await world.watch.end()
    }
  }
}
