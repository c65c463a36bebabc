import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct TrafficTests {
  let latches: InputLatches

  init() throws { latches = try InputLatches(capacity: 16) }

  /// Takes one sample, as the daemon does once a second.
  private func sample(_ monitor: TrafficMonitor, _ worker: Sleeper) throws -> Bool {
    latches.collect()
    let tree = try worker.tree()
    defer { monitor.didReport() }
    return monitor.begin().perform(at: tree)
  }

  @Test func `Input is reported again if the outcome of a sample was lost`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    #expect(try !sample(monitor, worker))
    try Client.connect(port: try worker.port()).expectEcho()
    for _ in 0..<3 {
      latches.collect()
      #expect(monitor.begin().hasInput)
    }
    #expect(try sample(monitor, worker))
    // The end of the connection may come after that sample.
    #expect(try eventually { try !sample(monitor, worker) })
  }

  @Test func `A connection that began and ended between two looks counts as traffic`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let port = try worker.port()
    let threads = try worker.threadCount()
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    #expect(try !sample(monitor, worker))
    for _ in 0..<20 {
      #expect(try !sample(monitor, worker))
      var client: Descriptor? = try Client.connect(port: port)
      try client?.expectEcho()
      client = nil
      // The thread that served the client has read the end of the connection.
      #expect(try eventually { try worker.threadCount() == threads })
      #expect(try sample(monitor, worker))
      // The latch may have fired once more for the hang-up.
      _ = try sample(monitor, worker)
    }
    for _ in 0..<20 { #expect(try !sample(monitor, worker)) }
  }

  @Test func `A worker with a listener has clients, and one without any input has none`() throws {
    let server = try Sleeper(WakeSourcesTests.echo)
    let job = try Sleeper(
      "os.dup2(os.open('/dev/null', os.O_RDWR), 0); print('ready', flush=True)\n"
        + "while True: time.sleep(0.2)")
    for (worker, hasClients) in [(server, true), (job, false)] {
      let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
      latches.collect()
      let current = monitor.begin()
      _ = current.perform(at: try worker.tree())
      #expect(current.hasClients == hasClients)
    }
  }

  @Test(arguments: [true, false])
  func `Only datagram sockets to which any program can send make a worker one with clients`(
    isServer: Bool
  ) throws {
    let scratch = try Scratch()
    let log = try UnixSocket.bound(to: "\(scratch.path)/log", .datagram)
    let worker = try Sleeper(
      """
      os.dup2(os.open('/dev/null', os.O_RDWR), 0)
      log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      log.connect('\(scratch.path)/log')
      journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      resolver = socket.socket(type=socket.SOCK_DGRAM)
      resolver.connect(('127.0.0.1', 9))
      unused = socket.socket(type=socket.SOCK_DGRAM)
      if \(isServer ? "True" : "False"):
          server = socket.socket(type=socket.SOCK_DGRAM)
          server.bind(('127.0.0.1', 0))
      print('ready', flush=True)
      time.sleep(60)
      """)
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    let current = monitor.begin()
    _ = current.perform(at: try worker.tree())
    #expect(current.hasClients == isServer)
    #expect(try worker.sleepQuietly().hasClients == isServer)
    withExtendedLifetime(log) {}
  }

  @Test(arguments: [("dotnet-diagnostic-17-4711-socket", false), ("app.sock", true)])
  func `The debuggers' socket of a .NET runtime doesn't make a worker one with clients`(
    name: String, hasClients: Bool
  ) throws {
    let worker = try Sleeper(
      """
      os.dup2(os.open('/dev/null', os.O_RDWR), 0)
      listener = socket.socket(socket.AF_UNIX)
      listener.bind(os.getcwd() + '/\(name)')
      listener.listen()
      print('ready', flush=True)
      time.sleep(60)
      """)
    let sources = try worker.sleepQuietly()
    #expect(sources.count == 1 && sources.hasClients == hasClients)
  }

  @Test func `Requests on an old connection count as traffic, and its silence doesn't`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let client = try Client.connect(port: try worker.port())
    try client.expectEcho()
    try worker.waitForEmptyQueues()
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    #expect(try !sample(monitor, worker))
    for _ in 0..<20 { #expect(try !sample(monitor, worker)) }
    try client.expectEcho()
    try worker.waitForEmptyQueues()
    #expect(try sample(monitor, worker))
    for _ in 0..<20 { #expect(try !sample(monitor, worker)) }
  }

  @Test func `The source of traffic is the peer of a connection, or its port`() throws {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let port = try worker.port()
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    _ = try sample(monitor, worker)
    do {
      let short = try Client.connect(port: port)
      try short.expectEcho()
    }
    latches.collect()
    let first = monitor.begin()
    #expect(first.perform(at: try worker.tree()))
    #expect(first.source?.port == port, "\(String(describing: first.source))")
    let client = try Client.connect(port: port)
    for _ in 0..<2 {
      try client.expectEcho()
      try worker.waitForEmptyQueues()
      latches.collect()
      let current = monitor.begin()
      #expect(current.perform(at: try worker.tree()))
      #expect(
        current.source?.text == "connection from \(SocketName.local(of: client)) to port \(port)")
    }
  }

  @Test
  func
    `What a worker sends by itself counts as traffic, and so does a request until it is answered`()
    throws
  {
    let worker = try Sleeper(
      """
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      connection, _ = listener.accept()
      connection.recv(100)
      print('got', flush=True)
      sys.stdin.readline()
      # More than a tick of the kernel's clock after the question: the kernel shows which was first.
      time.sleep(0.02)
      connection.sendall(b'answer')
      sys.stdin.readline()
      connection.sendall(b'more')
      time.sleep(60)
      """)
    let client = try Client.connect(port: try worker.port())
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    _ = try sample(monitor, worker)
    let asked = Clocks.monotonic
    try client.writeAll("question")
    #expect(try eventually { worker.log.contains("got") })
    for _ in 0..<20 {
      let isSeen = try sample(monitor, worker)
      // A request counts as traffic for 2 s. On a busy machine 20 samples may take longer.
      if Clocks.monotonic - asked < 1_500_000_000 { #expect(isSeen) }
    }
    // The worker slept and woke in the meantime: the first sample of a new monitor detects the
    // request.
    let second = try TrafficMonitor(latches: latches, daemonSockets: [])
    let isSeen = try sample(second, worker)
    if Clocks.monotonic - asked < 1_500_000_000 { #expect(isSeen) }
    try worker.stdin?.writeAll("\n")
    #expect(try client.read(upTo: 64) == Array("answer".utf8))
    try worker.waitForEmptyQueues()
    _ = try sample(monitor, worker)
    for _ in 0..<20 { #expect(try !sample(monitor, worker)) }
    try worker.stdin?.writeAll("\n")
    #expect(try client.read(upTo: 64) == Array("more".utf8))
    #expect(try sample(monitor, worker))
  }

  @Test
  func
    `A connection that was accepted after the descriptors were listed is found by the next sample`()
    throws
  {
    let worker = try Sleeper(
      """
      import signal
      signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      signal.sigwait({signal.SIGUSR1})
      connection, _ = listener.accept()
      print('got', flush=True)
      connection.recv(100)
      time.sleep(60)
      """)
    let port = try worker.port()
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    _ = try sample(monitor, worker)
    let client = try Client.connect(port: port)
    let asked = Clocks.monotonic
    try client.writeAll("question")
    #expect(try sample(monitor, worker))
    // Neither an accept nor a signal is an event of an input.
    kill(worker.process.pid, SIGUSR1)
    #expect(try eventually { worker.log.contains("got") })
    for _ in 0..<3 {
      let isSeen = try sample(monitor, worker)
      if Clocks.monotonic - asked < 1_500_000_000 { #expect(isSeen) }
    }
  }

  @Test func `Timers, and communication between a worker's own processes, aren't traffic`() throws {
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
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    for _ in 0..<20 {
      #expect(try !sample(monitor, worker))
      usleep(2000)
    }
  }

  @Test func `A traffic monitor leaves no descriptor open, and keeps nothing of the worker's open`()
    throws
  {
    let worker = try Sleeper(WakeSourcesTests.echo)
    let port = try worker.port()
    let monitor = try TrafficMonitor(latches: latches, daemonSockets: [])
    _ = try sample(monitor, worker)
    kill(worker.process.pid, SIGKILL)
    #expect(try eventually { Client.isRefused(port: port) })
    withExtendedLifetime(monitor) {}
  }
}
