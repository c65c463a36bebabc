import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Supervision

@Suite struct PressureWatchTests {
  /// A client that follows https://systemd.io/MEMORY_PRESSURE: connect, write, poll, read.
  private static let client = """
    import base64, os, select, socket, time
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(os.environ['MEMORY_PRESSURE_WATCH'])
    s.send(base64.b64decode(os.environ['MEMORY_PRESSURE_WRITE']))
    poll = select.poll()
    poll.register(s, select.POLLIN)
    print('listening', flush=True)

    """

  @Test func `A client of the pressure socket receives each notification`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      Self.client + """
        for turn in range(2):
            poll.poll()
            s.recv(4096)
            print('pressure', turn, flush=True)
        """)
    #expect(
      try pollDescriptor(
        worker.watch.descriptor.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    try worker.waitForOutput("listening")
    #expect(try worker.watch.notifyAll() == 1)
    try worker.waitForOutput("pressure 0")
    #expect(try worker.watch.notifyAll() == 1)
    try worker.waitForOutput("pressure 1")
    // The client ends, and isn't counted any more.
    #expect(try worker.waitForExit() == .exited(0))
    #expect(
      try eventually {
        try worker.watch.service()
        return worker.watch.listenerCount == 0
      })
    #expect(
      try !pollDescriptor(worker.watch.descriptor.raw, for: POLLIN, until: Deadline(in: .zero)))
  }

  @Test
  func
    `A pressure client that never reads costs nothing, and one that floods is disconnected`()
    throws
  {
    let scratch = try Scratch()
    let watch = try PressureWatch(path: "\(scratch.path)/watch")
    let deaf = try UnixSocket.connected(to: watch.path, .stream)
    let flooding = try UnixSocket.connected(to: watch.path, .stream)
    for _ in 0..<10_000 { _ = try watch.notifyAll() }
    #expect(watch.listenerCount == 2)
    try flooding.writeAll(String(repeating: "x", count: 5000))
    while try pollDescriptor(watch.descriptor.raw, for: POLLIN, until: Deadline(in: .zero)) {
      try watch.service()
    }
    #expect(watch.listenerCount == 1)
    _ = deaf
  }

  @Test func `The number of connections to the pressure socket is limited`() throws {
    let scratch = try Scratch()
    let watch = try PressureWatch(path: "\(scratch.path)/watch")
    var clients: [Descriptor] = []
    for _ in 0..<50 {
      clients.append(try UnixSocket.connected(to: watch.path, .stream))
      try watch.service()
    }
    #expect(watch.listenerCount == PressureWatch.maxConnections)
    clients.removeAll()
    #expect(try eventually { try watch.notifyAll() == 0 })
  }
}

@Suite struct ShedTests {
  @Test func `A shed signal is sent only to a process that handles it`() throws {
    let worker = try TestWorker(
      "sh", "-c", "trap 'echo shed' USR1; sleep 60 & echo on; while :; do wait; done")
    try worker.waitForOutput("on")
    #expect(try !worker.process.tree().receiving(SIGUSR1).isEmpty)
    try worker.process.requestMemory(by: SIGUSR1, in: nil)
    try worker.waitForOutput("shed")

    let error = #expect(throws: ShedRefusal.notCaught(signal: SIGUSR2)) {
      try worker.process.requestMemory(by: SIGUSR2, in: nil)
    }
    #expect(error?.description.contains("SIGUSR2") == true)
    #expect(worker.process.life == .lives)
  }

  @Test func `The topmost process that handles a shed signal gets it, and no process below it`()
    throws
  {
    let inner = "trap 'echo inner' USR1; echo on; while :; do sleep 0.05; done"
    let worker = try TestWorker("sh", "-c", "sh -c \"\(inner)\" & wait; true")
    try worker.waitForOutput("on")
    let root = worker.process.identity.pid
    #expect(try worker.process.tree().receiving(SIGUSR1).pids.count == 1)
    #expect(try !worker.process.tree().receiving(SIGUSR1).contains(root))

    let both = try TestWorker(
      "sh", "-c", "trap 'echo outer' USR1; sh -c \"\(inner)\" & while :; do wait; done")
    try both.waitForOutput("on")
    #expect(
      try eventually {
        try both.process.tree().receiving(SIGUSR1).pids == [both.process.identity.pid]
      })
  }

  @Test func `A shed request over the pressure socket is refused if no process listens there`()
    throws
  {
    let worker = try TestWorker("sleep", "60")
    #expect(throws: ShedRefusal.noListener) { try worker.watch.requestMemory() }
  }

  @Test func `A shed command runs with the worker's environment and directory, into its log`()
    throws
  {
    let worker = try TestWorker("sleep", "60", environment: ["COLOUR": "red"])
    let command = worker.process.runBeside(
      ["sh", "-c", "echo $COLOUR $DORMOUSE_WORKER $DORMOUSE_WORKER_PID; pwd; exit 3"],
      as: "shed command")
    try command.follow()
    #expect(command.phase == .ended(.exited(3)))
    #expect(
      try readText(worker.log)
        == "red \(worker.process.plan.name) \(worker.process.identity.pid)\n"
        + "\(worker.scratch.path)\n"
    )
  }

  @Test func `Cancelling a shed command ends it and what it started`() throws {
    let worker = try TestWorker("sleep", "60")
    let command = worker.process.runBeside(
      ["sh", "-c", "sleep 61 & echo $! started; wait"], as: "shed command")
    try command.follow { $0 == .running }
    try worker.waitForOutput("started")
    let child = try #require(Int32(readText(worker.log).split(separator: " ")[0]))
    let identity = try ProcessIdentity.current(of: child)
    command.cancel()
    #expect(command.isOver)
    #expect(try eventually { identity.hasEnded })
    #expect(worker.process.life == .lives)
  }

  @Test func `A shed command that doesn't exist fails with its name`() throws {
    let worker = try TestWorker("sleep", "60")
    let command = worker.process.runBeside(["no-such-thing"], as: "shed command")
    try command.follow()
    guard case .failed(let error) = command.phase else {
      Issue.record("\(command.phase)")
      return
    }
    #expect(error.description.contains("no-such-thing"))
  }

  @Test(arguments: [("USR1", SIGUSR1), ("SIGUSR1", SIGUSR1), ("sigterm", SIGTERM), ("42", 42)])
  func `Signals are read by name and by number`(text: String, number: Int32) {
    #expect(Signals.number(text) == number)
  }

  @Test func `A text that is no signal has no number`() {
    #expect(Signals.number("0") == nil)
    #expect(Signals.number("65") == nil)
    #expect(Signals.number("USR3") == nil)
    #expect(Signals.text(42) == "signal 42")
  }
}
