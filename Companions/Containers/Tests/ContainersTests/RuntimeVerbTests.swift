import Foundation
import Testing

@testable import Containers

extension RuntimeSuites {
  @Suite("What the verbs of Docker and Podman do to a hibernated container") struct RuntimeVerbTests
  {
    @Test(
      "Each verb of the runtime works on a hibernated container, and wakes it only if needed",
      arguments: RuntimeKind.usable)
    func verbs(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let port = try await world.startServer("web")
      try await world.watch.log.wait(for: "adopted as web")
      let (runtime, old) = (world.runtime, try LineConnection(port: port))
      let first = try old.ask()
      try await world.hibernate("web")
      try runtime.command("exec", "web", "/bin/sh", "-c", "test -d /proc/1 && kill -0 1")
      #expect(try runtime.command("logs", "web").contains("ready"))
      let columns = kind == .podman ? ["pid", "args"] : ["-o", "pid,args"]
      #expect(try runtime.tryCommand(["top", "web"] + columns).output.contains("server.py"))
      try runtime.command("stats", "--no-stream", "web")
      try runtime.command("cp", "\(runtime.scratch.path)/server.py", "web:/tmp/copy")
      try runtime.command("cp", "web:/tmp/copy", "\(runtime.scratch.path)/copied")
      #expect(try runtime.command("inspect", "-f", "{{.State.Status}}", "web") == "running")
      #expect(try world.state("web") == "hibernated", "\(world.daemon.logText)")
      try runtime.command("update", "--cpus", "1", "web")
      // The container is only watched, with its input closed.
      #expect(try runtime.shell(#"timeout -s KILL 2 "$@" attach --no-stdin web"#).code == 137)
      #expect(try world.state("web") == "hibernated", "\(world.daemon.logText)")
      // A pause doesn't wake a container; `commit` pauses it as well.
      try runtime.command("commit", "web", "localhost/dormouse-commit")
      try runtime.command("pause", "web")
      try runtime.command("unpause", "web")
      #expect(try world.state("web") == "hibernated", "\(world.daemon.logText)")
      #expect(try old.ask() == "2" + first.dropFirst())
      // A signal wakes it.
      try await world.hibernate("web")
      try runtime.command("kill", "-s", "USR1", "web")
      try await world.daemon.wait(for: "web", "foreground", "background")
      // So does a program in the container that connects to it, as a health check does.
      try await world.hibernate("web")
      try runtime.command(
        "exec", "web", "/usr/bin/python3", "-c",
        "import socket; s = socket.create_connection(('127.0.0.1', 8000), 30); s.send(b'x\\n'); "
          + "assert s.recv(99).startswith(b'3 ')")
      #expect(try old.ask() == "4" + first.dropFirst())
      try await world.watch.end()
    }

    @Test(
      "`stop`, `restart` and `kill` end a hibernated container as they end an awake one",
      arguments: RuntimeKind.usable)
    func ends(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      _ = try await world.startServer("web")
      try await world.watch.log.wait(for: "adopted as web")
      try await world.hibernate("web")
      let began = ContinuousClock.now
      try world.runtime.command("stop", "-t", "30", "web")
      #expect(ContinuousClock.now - began < .seconds(20), "it was killed, not stopped")
      // The container's handler ran with its memory.
      #expect(try world.runtime.command("logs", "web").contains("heard 15"))
      #expect(try world.runtime.command("inspect", "-f", "{{.State.ExitCode}}", "web") == "0")
      try await world.watch.log.wait(for: "ended; the worker web is forgotten")
      try world.runtime.command("start", "web")
      try await world.watch.log.wait(for: "adopted as web", count: 2)
      try await world.hibernate("web")
      try world.runtime.command("restart", "-t", "30", "web")
      try await world.watch.log.wait(for: "adopted as web", count: 3)
      try await world.hibernate("web")
      try world.runtime.command("kill", "web")
      #expect(try world.runtime.command("inspect", "-f", "{{.State.ExitCode}}", "web") == "137")
      try await world.watch.log.wait(for: "ended; the worker web is forgotten", count: 3)
      #expect(try world.daemon.workers().isEmpty)
      try await world.watch.end()
    }

    @Test(
      "A line that `attach` passes to a hibernated container wakes it, and is read with its memory",
      arguments: RuntimeKind.usable)
    func attached(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let reader = """
        import sys
        memory = bytearray(16 << 20)
        for number, line in enumerate(sys.stdin): print("line", number, line.strip(), flush=True)
        """
      try world.runtime.start("reader", ["-i"], ["/usr/bin/python3", "-c", reader])
      try await world.watch.log.wait(for: "adopted as reader")
      try await world.hibernate("reader")
      _ = try world.runtime.shell(
        #"{ echo one; sleep 3; } | timeout -s KILL 2 "$@" attach --sig-proxy=false reader"#)
      let isRead = try await eventually {
        try world.runtime.command("logs", "reader").contains("line 0 one")
      }
      #expect(isRead, "\(world.daemon.logText)")
      try await world.watch.end()
    }

    @Test(
      "A health check that doesn't connect lets a container sleep, and one that connects wakes it",
      arguments: RuntimeKind.usable)
    func healthChecks(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let connects =
        "python3 -c 'import socket; s = socket.create_connection((\"127.0.0.1\", 8000), 30); "
        + "s.send(b\"x\\n\"); s.recv(9)'"
      _ = try await world.startServer(
        "quiet", ["--health-cmd", "test -d /proc/1", "--health-interval", "1s"])
      _ = try await world.startServer(
        "loud", ["--health-cmd", connects, "--health-interval", "2s"])
      try await world.watch.log.wait(for: "its health check runs every 1 s")
      try await world.watch.log.wait(for: "its health check runs every 2 s")
      let checks = Checks(world)
      try await world.hibernate("quiet")
      try await checks.wait(for: "quiet", count: 3)
      #expect(try world.state("quiet") == "hibernated", "\(world.daemon.logText)")
      try await world.hibernate("loud")
      try await checks.wait(for: "loud", count: 1)
      try await world.daemon.wait(for: "loud", "foreground", "background")
      try await world.watch.end()
    }

    /// Health checks that succeed. Docker runs them itself. Podman leaves that to timers of
    /// systemd, which may not be there.
    private struct Checks {
      private let world: RuntimeWorld

      init(_ world: RuntimeWorld) { self.world = world }

      func wait(for name: String, count: Int) async throws {
        if world.runtime.kind == .podman {
          for _ in 0..<count { try world.runtime.command("healthcheck", "run", name) }
          return
        }
        var seen: Set<String> = []
        let first = try last(name)
        let areThere = try await eventually {
          let latest = try last(name)
          if latest != first { seen.insert(latest) }
          return seen.count >= count
        }
        if !areThere { throw Failure("no \(count) health checks of \(name): \(seen)") }
        #expect(
          try world.runtime.command("inspect", "-f", "{{.State.Health.Status}}", name) == "healthy")
      }

      private func last(_ name: String) throws -> String {
        try world.runtime.command(
          "inspect", "-f", "{{range .State.Health.Log}}{{println .End}}{{end}}", name
        ).split(separator: "\n").last.map(String.init) ?? ""
      }
    }
  }
}
