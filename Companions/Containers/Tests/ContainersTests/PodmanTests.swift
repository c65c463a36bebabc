import Foundation
import Testing

@testable import Containers

@Suite(
  "Containers of a real Podman", .serialized,
  .enabled(if: PodmanRuntime.obstacle == nil, "\(PodmanRuntime.obstacle ?? "")"))
struct PodmanTests {
  /// A server that keeps a count and 20 MB, and answers each line with both.
  private static let server = """
    import hashlib, os, random, signal, socketserver, sys
    random.seed(7)
    memory = bytearray(random.randbytes(20 << 20))
    count = 0
    def hear(number, frame):
        print("heard", number, flush=True)
        if number == signal.SIGTERM: os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(number, hear)
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            global count
            for line in self.rfile:
                count += 1
                self.wfile.write(f"{count} {hashlib.sha256(memory).hexdigest()[:8]}\\n".encode())
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    server = socketserver.ThreadingTCPServer(("0.0.0.0", int(sys.argv[1])), Handler)
    print("ready", flush=True)
    server.serve_forever()

    """

  /// A daemon, Podman, and `dormouse-containers` between them.
  private final class World {
    let daemon: AdoptingTestDaemon
    let podman: PodmanRuntime
    let watch: RunningWatch
    private var digest = ""

    init() throws {
      daemon = try AdoptingTestDaemon()
      podman = try PodmanRuntime()
      try Data(PodmanTests.server.utf8).write(to: URL(filePath: "\(podman.scratch.path)/server.py"))
      var settings = WatchSettings(
        runtimes: [Runtime(name: "podman", socket: podman.socket)], socket: daemon.socket)
      settings.daemonInterval = .milliseconds(300)
      settings.retry = RetryDelays(first: .milliseconds(50), longest: .milliseconds(500))
      watch = RunningWatch(settings)
    }

    /// Starts the server, and returns the port at which this machine reaches it.
    func startServer(_ name: String, _ options: [String] = []) async throws -> UInt16 {
      try podman.start(
        name, ["-p", "127.0.0.1::8000"] + options, ["/usr/bin/python3", "/test/server.py", "8000"])
      return try await published(8000, of: name)
    }

    func published(_ port: Int, of name: String) async throws -> UInt16 {
      let text = try podman.podman("port", name, "\(port)/tcp")
      guard let port = text.split(separator: ":").last.flatMap({ UInt16($0) }) else {
        throw Failure("no port: \(text); \(try podman.podman("logs", name))")
      }
      let isListening = try await eventually { (try? LineConnection(port: port)) != nil }
      if !isListening {
        throw Failure("\(name) doesn't listen: \(try podman.podman("logs", name))")
      }
      return port
    }

    func hibernate(_ name: String) async throws {
      try await daemon.wait(for: name, "foreground", "background")
      // A connection may be too fresh; a request isn't refused for that, but may find a busy thread.
      let isAsleep = try await eventually {
        try daemon.ask("hibernate", name).code == 0 && daemon.state(of: name) == "hibernated"
      }
      if !isAsleep { throw Failure("\(name) doesn't hibernate: \(daemon.words)") }
    }

    func state(_ name: String) throws -> String { try daemon.state(of: name) ?? "none" }
  }

  /// Lines over TCP.
  private final class LineConnection {
    private let file: Int32

    init(port: UInt16) throws {
      file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var limit = timeval(tv_sec: 60, tv_usec: 0)
      setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard result == 0 else {
        close(file)
        throw Failure("connect: errno \(errno)")
      }
    }

    func ask(_ line: String = "x") throws -> String {
      let bytes = Array("\(line)\r\n".utf8)
      guard send(file, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
        throw Failure("send: errno \(errno)")
      }
      var answer = [UInt8](repeating: 0, count: 4096)
      let count = recv(file, &answer, answer.count, 0)
      guard count > 0 else { throw Failure("no answer: \(count), errno \(errno)") }
      return String(decoding: answer[..<count], as: UTF8.self)
    }

    deinit { close(file) }
  }

  @Test(
    "A hibernated container gives its memory back, keeps its connections, and is woken by its published port"
  )
  func sleep() async throws {
    let world = try World()
    let port = try await world.startServer("web", ["--memory", "200m"])
    try await world.watch.log.wait(for: "adopted as web")
    #expect(try world.daemon.workers().first?.policy == "server")
    let old = try LineConnection(port: port)
    let first = try old.ask()
    let (footprint, charge) = (
      try world.daemon.workers().first?.footprint ?? 0, try world.podman.charge(of: "web")
    )
    #expect(footprint > 20 << 20)
    try await world.hibernate("web")
    let asleep = try world.daemon.workers().first?.footprint ?? .max
    #expect(asleep < 1 << 20, "\(footprint) → \(asleep)")
    if let charge {
      let after = try #require(try world.podman.charge(of: "web"))
      #expect(after < charge - (19 << 20), "\(charge) → \(after)")
    }
    let second = try old.ask()
    #expect(first.hasPrefix("1 ") && second == "2" + first.dropFirst())
    try await world.hibernate("web")
    #expect(try LineConnection(port: port).ask() == "3" + first.dropFirst())
    try await world.watch.end()
  }

  @Test(
    "Each verb of Podman works on a hibernated container, and wakes it only where it is needed")
  func verbs() async throws {
    let world = try World()
    let port = try await world.startServer("web")
    try await world.watch.log.wait(for: "adopted as web")
    let (podman, old) = (world.podman, try LineConnection(port: port))
    let first = try old.ask()
    try await world.hibernate("web")
    try podman.podman("exec", "web", "/bin/sh", "-c", "test -d /proc/1 && kill -0 1")
    #expect(try podman.podman("logs", "web").contains("ready"))
    #expect(try podman.podman("top", "web", "pid", "args").contains("server.py"))
    try podman.podman("stats", "--no-stream", "web")
    try podman.podman("cp", "\(podman.scratch.path)/server.py", "web:/tmp/copy")
    try podman.podman("cp", "web:/tmp/copy", "\(podman.scratch.path)/copied")
    #expect(try podman.podman("inspect", "-f", "{{.State.Status}}", "web") == "running")
    #expect(try world.state("web") == "hibernated", "\(world.daemon.words)")
    // A pause isn't a wish to run.
    try podman.podman("pause", "web")
    try podman.podman("unpause", "web")
    #expect(try world.state("web") == "hibernated", "\(world.daemon.words)")
    #expect(try old.ask() == "2" + first.dropFirst())
    // A signal is.
    try await world.hibernate("web")
    try podman.podman("kill", "-s", "USR1", "web")
    let isHeard = try await eventually { try podman.podman("logs", "web").contains("heard 10") }
    #expect(isHeard)
    // A program in it that connects to it, as a health check does.
    try await world.hibernate("web")
    try podman.podman(
      "exec", "web", "/usr/bin/python3", "-c",
      "import socket; s = socket.create_connection(('127.0.0.1', 8000), 30); s.send(b'x\\n'); "
        + "assert s.recv(99).startswith(b'3 ')")
    #expect(try old.ask() == "4" + first.dropFirst())
    try await world.watch.end()
  }

  @Test("`stop`, `restart` and `kill` end a hibernated container as they end an awake one")
  func ends() async throws {
    let world = try World()
    _ = try await world.startServer("web")
    try await world.watch.log.wait(for: "adopted as web")
    try await world.hibernate("web")
    let began = ContinuousClock.now
    try world.podman.podman("stop", "-t", "30", "web")
    #expect(ContinuousClock.now - began < .seconds(20), "it was killed, not stopped")
    // Its handler ran with its memory.
    #expect(try world.podman.podman("logs", "web").contains("heard 15"))
    #expect(try world.podman.podman("inspect", "-f", "{{.State.ExitCode}}", "web") == "0")
    try await world.watch.log.wait(for: "ended; the worker web is forgotten")
    try world.podman.podman("start", "web")
    try await world.watch.log.wait(for: "adopted as web", count: 2)
    try await world.hibernate("web")
    try world.podman.podman("restart", "-t", "30", "web")
    try await world.watch.log.wait(for: "adopted as web", count: 3)
    try await world.hibernate("web")
    try world.podman.podman("kill", "web")
    #expect(try world.podman.podman("inspect", "-f", "{{.State.ExitCode}}", "web") == "137")
    try await world.watch.log.wait(for: "ended; the worker web is forgotten", count: 3)
    #expect(try world.daemon.workers().isEmpty)
    try await world.watch.end()
  }

  @Test("Neither a killed daemon nor a restarted Podman service loses a hibernated container")
  func restarts() async throws {
    let world = try World()
    let port = try await world.startServer("web")
    try await world.watch.log.wait(for: "adopted as web")
    let old = try LineConnection(port: port)
    let first = try old.ask()
    try await world.hibernate("web")
    try await world.daemon.waitForRecord(of: "web", state: "hibernated")
    world.daemon.crash()
    try world.daemon.start()
    // The next daemon wakes it: its tracer has ended.
    try await world.daemon.wait(for: "web", "foreground", "background")
    #expect(try world.daemon.workers().first?.policy == "server")
    try await world.hibernate("web")
    world.podman.stopService()
    try await world.watch.log.wait(for: "podman at \(world.podman.socket): it")
    #expect(try world.state("web") == "hibernated")
    try world.podman.startService()
    try await world.watch.log.wait(for: "its events are followed")
    #expect(try old.ask() == "2" + first.dropFirst())
    #expect(world.watch.log.count("adopted as web") == 1, "\(world.watch.log.all)")
    try await world.watch.end()
  }

  @Test(
    "A container hibernates and answers in each kind of namespace and with each kind of restriction",
    arguments: [
      ["--userns=auto"], ["--uidmap=0:200000:65536"], ["--user=33:33"], ["--pid=host"],
      ["--init"], ["--ipc=host"], ["--cgroupns=private"], ["--read-only"],
      ["--cap-drop=all", "--security-opt=no-new-privileges"],
      ["--security-opt=seccomp=unconfined"], ["--privileged"],
    ])
  func kinds(options: [String]) async throws {
    let world = try World()
    let port: UInt16
    do { port = try await world.startServer("web", options) } catch let failure as Failure
      where options.joined().contains("userns=auto")
    {
      // It needs a range of users for containers in /etc/subuid.
      try #require(failure.description.contains("containers"), "\(failure)")
      return
    }
    try await world.watch.log.wait(for: "adopted as web")
    let old = try LineConnection(port: port)
    let first = try old.ask()
    try await world.hibernate("web")
    #expect(try old.ask() == "2" + first.dropFirst(), "\(world.daemon.words)")
    try await world.watch.end()
  }

  @Test(
    "redis and nginx sleep in containers and answer",
    .enabled(
      if: FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")
        && FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx"),
      "redis-server or nginx isn't installed"))
  func servers() async throws {
    let world = try World()
    try world.podman.start(
      "redis", ["-p", "127.0.0.1::6379"],
      ["/usr/bin/redis-server", "--protected-mode", "no", "--dir", "/data"])
    let configuration = """
      daemon off; worker_processes 2; pid /run/nginx.pid; error_log stderr; user www-data;
      events {} http { access_log off; client_body_temp_path /run/b; proxy_temp_path /run/p; fastcgi_temp_path /run/f;
      uwsgi_temp_path /run/u; scgi_temp_path /run/s; server { listen 8080; location / { return 200 "here\\n"; } } }

      """
    try Data(configuration.utf8).write(
      to: URL(filePath: "\(world.podman.scratch.path)/nginx.conf"))
    try world.podman.start(
      "nginx", ["-p", "127.0.0.1::8080"], ["/usr/sbin/nginx", "-c", "/test/nginx.conf"])
    let redis = try LineConnection(port: try await world.published(6379, of: "redis"))
    #expect(try redis.ask("SET key value") == "+OK\r\n")
    let port = try await world.published(8080, of: "nginx")
    try await world.hibernate("redis")
    try await world.hibernate("nginx")
    #expect(try redis.ask("GET key") == "$5\r\nvalue\r\n")
    let answer = try LineConnection(port: port).ask("GET / HTTP/1.0\r\n")
    #expect(answer.contains("200 OK"), "\(answer)")
    // Stopped while it sleeps it saves its data, as always.
    try await world.hibernate("redis")
    try world.podman.podman("stop", "-t", "30", "redis")
    try world.podman.podman("start", "redis")
    let again = try LineConnection(port: try await world.published(6379, of: "redis"))
    let isLoaded = try await eventually { try again.ask("GET key").contains("value") }
    #expect(isLoaded)
    try await world.watch.end()
  }
}
