import Foundation
import Testing

@testable import Containers

extension RuntimeSuites {
  @Suite("Servers in containers of a real Docker and a real Podman") struct RuntimeServerTests {
    @Test(
      "redis and nginx sleep in containers and answer",
      .enabled(
        if: FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")
          && FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx"),
        "redis-server or nginx isn't installed"), arguments: RuntimeKind.usable)
    func servers(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      try world.runtime.start(
        "redis", ["-p", "127.0.0.1::6379"],
        ["/usr/bin/redis-server", "--protected-mode", "no", "--dir", "/data"])
      let configuration = """
        daemon off; worker_processes 2; pid /run/nginx.pid; error_log stderr; user www-data;
        events {} http { access_log off; client_body_temp_path /run/b; proxy_temp_path /run/p; \
        fastcgi_temp_path /run/f;
        uwsgi_temp_path /run/u; scgi_temp_path /run/s; server { listen 8080; location / { return \
        200 "here\\n"; } } }

        """
      try Data(configuration.utf8).write(
        to: URL(filePath: "\(world.runtime.scratch.path)/nginx.conf"))
      try world.runtime.start(
        "nginx", ["-p", "127.0.0.1::8080"], ["/usr/sbin/nginx", "-c", "/test/nginx.conf"])
      let redis = try LineConnection(port: try await world.published(6379, of: "redis"))
      #expect(try redis.ask("SET key value") == "+OK\r\n")
      let port = try await world.published(8080, of: "nginx")
      try await world.hibernate("redis")
      try await world.hibernate("nginx")
      #expect(try redis.ask("GET key") == "$5\r\nvalue\r\n")
      let answer = try LineConnection(port: port).ask("GET / HTTP/1.0\r\n")
      #expect(answer.contains("200 OK"), "\(answer)")
      // If it is stopped while it sleeps, it saves its data as always.
      try await world.hibernate("redis")
      try world.runtime.command("stop", "-t", "30", "redis")
      try world.runtime.command("start", "redis")
      let again = try LineConnection(port: try await world.published(6379, of: "redis"))
      let isLoaded = try await eventually { try again.ask("GET key").contains("value") }
      #expect(isLoaded)
      try await world.watch.end()
    }

    /// The program, as Debian installs it.
    private static let postgres: String? = {
      let versions =
        (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
      return versions.sorted().last.map { "/usr/lib/postgresql/\($0)/bin" }
    }()

    @Test(
      "PostgreSQL sleeps in a container with a client connected, and answers it",
      .enabled(if: postgres != nil, "PostgreSQL isn't installed"), arguments: RuntimeKind.usable)
    func database(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let programs = try #require(Self.postgres)
      let script = """
        set -e
        [ -d /data/db ] || \(programs)/initdb -D /data/db -A trust -N >/dev/null
        echo 'host all all all trust' >> /data/db/pg_hba.conf
        exec \(programs)/postgres -D /data/db -c listen_addresses=* -c unix_socket_directories= -c \
        shared_buffers=16MB
        """
      let data = "\(world.runtime.scratch.path)/data"
      try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
      chown(data, 33, 33)
      try world.runtime.start(
        "db",
        [
          "-p", "127.0.0.1::5432", "--user", "33:33", "--stop-signal", "SIGINT", "-v",
          "\(data):/data",
        ],
        ["/bin/sh", "-c", script])
      let port = try await world.published(5432, of: "db")
      let isReady = try await eventually {
        try TestedPrograms.run("/usr/bin/psql", Self.psql(port) + ["-c", "select 1"]).code == 0
      }
      if !isReady { throw Failure("no answer: \(try world.runtime.command("logs", "db"))") }
      let client = try Self.session(port)
      defer { client.end() }
      #expect(try client.ask("create temp table t as select 42 as n; select n from t;") == "42")
      for round in 1...2 {
        try await world.hibernate("db")
        #expect(try client.ask("update t set n = n + 1; select n from t;") == "\(42 + round)")
      }
      try await world.hibernate("db")
      try world.runtime.command("stop", "-t", "30", "db")
      // The server has written its last checkpoint.
      #expect(try world.runtime.command("logs", "db").contains("database system is shut down"))
      try await world.watch.end()
    }

    private static func psql(_ port: UInt16) -> [String] {
      ["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", "\(port)", "-U", "www-data", "postgres"]
    }

    /// A psql that stays connected.
    private struct Session {
      var process: Process
      var input: Pipe
      var output: Pipe

      func end() {
        // psql ends at the end of its input. It may have ended before.
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
      }

      func ask(_ statement: String) throws -> String {
        try input.fileHandleForWriting.write(contentsOf: Data("\(statement)\n".utf8))
        return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
          .trimmingCharacters(in: .whitespacesAndNewlines)
      }
    }

    private static func session(_ port: UInt16) throws -> Session {
      let session = Session(
        process: Process(), input: TestedPrograms.pipe(), output: TestedPrograms.pipe())
      session.process.executableURL = URL(filePath: "/usr/bin/psql")
      session.process.arguments = psql(port)
      session.process.standardInput = session.input
      session.process.standardOutput = session.output
      try session.process.run()
      return session
    }

    @Test(
      "A node server sleeps in a container and answers with its state",
      .enabled(
        if: FileManager.default.isExecutableFile(atPath: "/usr/bin/node"), "node isn't installed"),
      arguments: RuntimeKind.usable)
    func node(kind: RuntimeKind) async throws {
      let world = try RuntimeWorld(kind)
      let script = """
        let count = 0; const memory = Buffer.alloc(16 << 20, 7);
        require("net").createServer((c) => c.on("data", () => c.write(`${++count} \
        ${memory[count]}`))).listen(8000)
        """
      try world.runtime.start("node", ["-p", "127.0.0.1::8000"], ["/usr/bin/node", "-e", script])
      let old = try LineConnection(port: try await world.published(8000, of: "node"))
      #expect(try old.ask() == "1 7")
      try await world.hibernate("node")
      #expect(try old.ask() == "2 7")
      try await world.watch.end()
    }
  }
}
