import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct TrafficTests {
  let latches: InputLatches

  init() throws { latches = try InputLatches(capacity: 16) }

  /// A look, as once a second.
  private func look(_ monitor: TrafficMonitor, _ worker: Sleeper) throws -> Bool {
    latches.take()
    return monitor.look(at: try worker.tree())
  }

  @Test func `a connection that came and went between two looks is seen`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let port = try worker.port()
    let monitor = try TrafficMonitor(latches: latches, ownChannels: [])
    #expect(try !look(monitor, worker))
    for _ in 0..<20 {
      #expect(try !look(monitor, worker))
      var client: Descriptor? = try Client.connect(port: port)
      try client?.writeAll("hello\n")
      #expect(try client?.read(upTo: 64) == Array("hello\n".utf8))
      client = nil
      usleep(5000)
      #expect(try look(monitor, worker))
      // What the end of it still stirred up.
      _ = try look(monitor, worker)
      usleep(5000)
      _ = try look(monitor, worker)
    }
    for _ in 0..<20 { #expect(try !look(monitor, worker)) }
  }

  @Test func `requests on an old connection are seen, and its silence isn't`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let client = try Client.connect(port: try worker.port())
    try client.writeAll("hello\n")
    #expect(try client.read(upTo: 64) == Array("hello\n".utf8))
    usleep(20_000)
    let monitor = try TrafficMonitor(latches: latches, ownChannels: [])
    #expect(try !look(monitor, worker))
    for _ in 0..<20 { #expect(try !look(monitor, worker)) }
    try client.writeAll("hello\n")
    #expect(try client.read(upTo: 64) == Array("hello\n".utf8))
    #expect(try look(monitor, worker))
    usleep(20_000)
    for _ in 0..<20 { #expect(try !look(monitor, worker)) }
  }

  @Test func `what it sends by itself is seen, and a request until it is answered`() throws {
    let worker = try Sleeper(
      """
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      connection, _ = listener.accept()
      connection.recv(100)
      sys.stdin.readline()
      connection.sendall(b'answer')
      sys.stdin.readline()
      connection.sendall(b'more')
      time.sleep(60)
      """)
    let client = try Client.connect(port: try worker.port())
    let monitor = try TrafficMonitor(latches: latches, ownChannels: [])
    _ = try look(monitor, worker)
    let asked = Clocks.monotonic
    try client.writeAll("question")
    usleep(20_000)
    for _ in 0..<20 {
      let isSeen = try look(monitor, worker)
      // A request counts as traffic for 2 s; a busy machine may take longer for 20 looks.
      if Clocks.monotonic - asked < 1_500_000_000 { #expect(isSeen) }
    }
    try worker.stdin?.writeAll("\n")
    #expect(try client.read(upTo: 64) == Array("answer".utf8))
    usleep(20_000)
    _ = try look(monitor, worker)
    for _ in 0..<20 { #expect(try !look(monitor, worker)) }
    try worker.stdin?.writeAll("\n")
    #expect(try client.read(upTo: 64) == Array("more".utf8))
    #expect(try look(monitor, worker))
  }

  @Test func `timers and talk among its own aren't traffic`() throws {
    let worker = try Sleeper(
      """
      one, other = socket.socketpair()
      reading, writing = os.pipe()
      print('ready', flush=True)
      while True:
          one.send(b'x'); other.recv(1)
          os.write(writing, b'x'); os.read(reading, 1)
          time.sleep(0.001)
      """)
    let monitor = try TrafficMonitor(latches: latches, ownChannels: [])
    for _ in 0..<20 {
      #expect(try !look(monitor, worker))
      usleep(2000)
    }
  }

  @Test func `a monitor leaves no descriptor, and keeps nothing of the worker's open`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let port = try worker.port()
    let monitor = try TrafficMonitor(latches: latches, ownChannels: [])
    _ = try look(monitor, worker)
    kill(worker.process.pid, SIGKILL)
    #expect(try eventually { Client.isRefused(port: port) })
    withExtendedLifetime(monitor) {}
  }
}
