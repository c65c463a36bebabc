import Glibc
import TestSupport
import Testing

@testable import Linux
@testable import Supervision

@Suite struct WakeSourcesTests {
  /// Echoes lines, with a thread for each connection. An echo takes longer than a tick of the
  /// kernel's clock, so that the kernel can distinguish request and answer.
  static let echo = """
    listener = socket.create_server(('127.0.0.1', 0))
    def serve(connection):
        for line in connection.makefile('rb'): time.sleep(0.02); connection.sendall(line)
    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=[connection], daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    print('ready', listener.getsockname()[1], flush=True)
    time.sleep(60)
    """

  /// Accepts a connection, and reads nothing.
  private static let unreading = """
    listener = socket.create_server(('127.0.0.1', 0))
    print('ready', listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    print('accepted', flush=True)
    time.sleep(60)
    """

  @Test func `A connection to a sleeping worker is reported with its port and isn't accepted`()
    throws
  {
    let worker = try Sleeper(Self.echo)
    let port = try worker.port()
    let sources = try worker.sleepQuietly()
    let client = try Client.connect(port: port)
    try client.writeAll("hello\n")
    #expect(try sources.next() == "a connection on port \(port)")
    #expect(sources.nextReason() == nil, "reported twice")
    try worker.resume()
    #expect(try client.read(upTo: 64) == Array("hello\n".utf8))
  }

  @Test func `An open connection to a sleeping worker is quiet until data or a hang-up comes`()
    throws
  {
    let worker = try Sleeper(Self.echo)
    let port = try worker.port()
    var client: Descriptor? = try Client.connect(port: port)
    for _ in 0..<3 {
      try client?.expectEcho()
      try worker.waitForEmptyQueues()
      let sources = try worker.sleepQuietly()
      try client?.writeAll("again\n")
      #expect(try sources.next() == "data on a connection to port \(port)")
      try worker.resume()
      #expect(try client?.read(upTo: 64) == Array("again\n".utf8))
    }
    try worker.waitForEmptyQueues()
    let sources = try worker.sleep()
    #expect(sources.waiting == nil)
    client = nil
    #expect(try sources.next() == "a hang-up on a connection to port \(port)")
  }

  @Test func `Data on stdin, and its end, wake a sleeping worker`() throws {
    let worker = try Sleeper(
      "print('ready', flush=True)\nfor line in sys.stdin: print(line, flush=True)")
    let sources = try worker.sleep()
    #expect(sources.waiting == nil)
    try worker.stdin?.writeAll("hello\n")
    #expect(try sources.next() == "data on stdin")
    try worker.resume()
    #expect(try eventually { worker.log.contains("hello") })
    let others = try worker.sleep()
    #expect(others.waiting == nil)
    worker.stdin = nil
    #expect(try others.next() == "the end of stdin")
  }

  @Test func `Unix sockets and datagrams wake a sleeping worker`() throws {
    let worker = try Sleeper(
      """
      stream = socket.socket(socket.AF_UNIX); stream.bind('s'); stream.listen()
      datagram = socket.socket(type=socket.SOCK_DGRAM); datagram.bind(('127.0.0.1', 0))
      print('ready', datagram.getsockname()[1], flush=True)
      time.sleep(60)
      """)
    let port = try worker.port()
    let sources = try worker.sleep()
    #expect(sources.count == 3)
    let client = try Client.connect(path: "\(worker.scratch.path)/s")
    #expect(try sources.next() == "a connection on s")
    try Client.sendDatagram(port: port)
    #expect(try sources.next() == "a datagram on port \(port)")
    _ = client
  }

  @Test
  func `Input that a worker leaves unread wakes it once, and then only further input wakes it`()
    throws
  {
    let worker = try Sleeper(Self.unreading)
    let port = try worker.port()
    let first = try Client.connect(port: port)
    #expect(try eventually { worker.log.contains("accepted") })
    let second = try Client.connect(port: port)
    try worker.stdin?.writeAll("unread")
    try first.writeAll("unread")
    #expect(try worker.stillUnread().unread.isEmpty)
    #expect(try worker.sleep().waiting != nil)
    #expect(worker.unreadBaseline.unread.count == 3)
    try worker.resume()
    let sources = try worker.sleepQuietly()
    try first.writeAll("more")
    #expect(try sources.next() == "data on a connection to port \(port)")
    let third = try Client.connect(port: port)
    #expect(try sources.next() == "a connection on port \(port)")
    try worker.stdin?.writeAll("more")
    #expect(try sources.next() == "data on stdin")
    _ = (second, third)
  }

  @Test(arguments: ["stdin", "connection", "listener"])
  func `Input that comes between the look at a worker and the watch is found`(place: String) throws
  {
    let worker = try Sleeper(Self.unreading)
    let port = try worker.port()
    let first = try Client.connect(port: port)
    #expect(try eventually { worker.log.contains("accepted") })
    // All of the input is unread already, so that only further input counts.
    let second = try Client.connect(port: port)
    try worker.stdin?.writeAll("x")
    try first.writeAll("x")
    _ = try worker.sleep()
    try worker.resume()
    let ignored = try worker.stillUnread()
    #expect(ignored.unread.count == 3)
    try worker.stop()
    var third: Descriptor?
    switch place {
    case "stdin": try worker.stdin?.writeAll("more")
    case "connection": try first.writeAll("more")
    default: third = try Client.connect(port: port)
    }
    let sources = try worker.sleep(ignoring: ignored)
    let expected = [
      "stdin": "data on stdin", "connection": "data on a connection to port \(port)",
      "listener": "a connection on port \(port)",
    ]
    #expect(sources.waiting == expected[place])
    _ = (second, third)
  }

  @Test func `A request that was read and not answered is found when the worker falls asleep`()
    throws
  {
    let worker = try Sleeper(
      """
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      connection, _ = listener.accept()
      while True:
          connection.recv(100)
          print('got', flush=True)
          while not os.path.exists('go'): time.sleep(0.005)
          connection.sendall(b'answer')
      """)
    let port = try worker.port()
    let client = try Client.connect(port: port)
    try client.writeAll("question")
    #expect(try eventually { worker.log.contains("got") })
    // On a busy machine the stop may take long.
    let sources = try worker.sleep(openFor: .seconds(60))
    #expect(sources.waiting == "a request on port \(port) that it had not answered")
    // If the request is older than the limit, the worker leaves it by choice.
    let late = try WakeSources(of: worker.tree(), daemonSockets: [], openFor: .zero)
    #expect(late.waiting == nil)
    _ = try Descriptor.open("\(worker.scratch.path)/go", O_CREAT | O_WRONLY, mode: 0o600)
    try worker.resume()
    #expect(try client.read(upTo: 64) == Array("answer".utf8))
    try worker.waitForEmptyQueues()
    #expect(try worker.sleep().waiting == nil)
  }

  @Test func `A request that follows immediately after the last answer is found`() throws {
    let worker = try Sleeper(
      """
      listener = socket.create_server(('127.0.0.1', 0))
      print('ready', listener.getsockname()[1], flush=True)
      while True:
          connection, _ = listener.accept()
          connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
          while data := connection.recv(1):
              if data == b'b': time.sleep(60)
              connection.sendall(data)
      """)
    let client = try Client.connect(port: try worker.port())
    // Most of these requests are answered within a tick of the kernel's clock. The last one isn't.
    for _ in 0..<4 {
      try client.writeAll("a")
      #expect(try client.read(upTo: 1) == Array("a".utf8))
    }
    try client.writeAll("b")
    try worker.waitForEmptyQueues()
    let sources = try worker.sleep(openFor: .seconds(60))
    #expect(sources.waiting == "a request on port \(try worker.port()) that it had not answered")
  }

  @Test
  func `Traffic whose order the kernel's clock can't distinguish counts as an unanswered request`()
  {
    func traffic(
      received: Int, sent: Int, acknowledged: Int
    ) -> SocketFacts.Traffic {
      SocketFacts.Traffic(
        received: 1, sent: 1, sinceReceived: .milliseconds(received),
        sinceSent: .milliseconds(sent), sinceAcknowledged: .milliseconds(acknowledged))
    }
    let limit = Duration.seconds(2)
    // The data was received, sent and acknowledged in the same tick, however long ago.
    for age in [0, 4, 12, 500, 1996] {
      #expect(traffic(received: age, sent: age, acknowledged: age).isUnanswered(within: limit))
    }
    #expect(!traffic(received: 2000, sent: 2000, acknowledged: 2000).isUnanswered(within: limit))
    #expect(traffic(received: 500, sent: 500, acknowledged: 496).isUnanswered(within: limit))
    #expect(!traffic(received: 500, sent: 500, acknowledged: 460).isUnanswered(within: limit))
    #expect(traffic(received: 500, sent: 504, acknowledged: 500).isUnanswered(within: limit))
    #expect(!traffic(received: 504, sent: 500, acknowledged: 500).isUnanswered(within: limit))
  }

  @Test func `Wake sources keep nothing open, so that the connections of a dead worker close`()
    throws
  {
    let worker = try Sleeper(Self.echo)
    let port = try worker.port()
    let client = try Client.connect(port: port)
    try client.expectEcho()
    let sources = try worker.sleep()
    kill(worker.process.pid, SIGKILL)
    #expect(try pollDescriptor(client.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    #expect(((try? client.read(upTo: 64)) ?? []).isEmpty)
    #expect(try eventually { Client.isRefused(port: port) })
    withExtendedLifetime(sources) {}
  }

  @Test func `Sockets within a worker, and those from it to the daemon, aren't watched`() throws {
    let scratch = try Scratch()
    let notify = try NotifySocket.create(in: scratch.path, name: "x")
    let watch = try PressureWatch(path: "\(scratch.path)/watch")
    let worker = try Sleeper(
      """
      os.close(0)
      own = os.pipe()
      pair = socket.socketpair()
      if os.fork() == 0: time.sleep(60)
      notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      notify.connect(os.environ['NOTIFY_SOCKET'])
      watch = socket.socket(socket.AF_UNIX)
      watch.connect(os.environ['MEMORY_PRESSURE_WATCH'])
      unused = socket.socket()
      file = open('/etc/passwd')
      netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
      print('ready', flush=True)
      time.sleep(60)
      """, environment: ["NOTIFY_SOCKET": notify.path, "MEMORY_PRESSURE_WATCH": watch.path])
    worker.daemonSockets = [notify.path, watch.path]
    let sources = try worker.sleep()
    #expect(sources.count == 0)
    #expect(sources.refusals.isEmpty)
    try watch.notifyAll()
    #expect(sources.nextReason() == nil)
  }

  @Test(arguments: [0, 2])
  func `A worker that listens at the number of a standard descriptor is woken`(number: Int) throws {
    let worker = try Sleeper(
      "one = socket.create_server(('127.0.0.1', 0)); port = one.getsockname()[1]\n"
        + "os.dup2(one.fileno(), \(number)); one.close(); print('ready', port, flush=True)\n"
        + "time.sleep(60)")
    let port = try worker.port()
    let sources = try worker.sleepQuietly()
    let client = try Client.connect(port: port)
    #expect(try sources.next() == "a connection on port \(port)")
    withExtendedLifetime(client) {}
  }

  @Test func `Wake sources of a process that has ended are empty and report no failure`() throws {
    let worker = try Sleeper("print('ready', flush=True)\ntime.sleep(60)")
    let tree = try worker.tree()
    kill(worker.process.pid, SIGKILL)
    #expect(try eventually { worker.identity.hasEnded })
    let sources = try WakeSources(of: tree, daemonSockets: [])
    #expect(sources.count == 0)
    #expect(sources.refusals.isEmpty)
  }
}
