import TestSupport
import Testing
import WorkerKit
import WorkerProtocol

@Suite(.timeLimit(.minutes(10))) struct ConnectionTests {
  @Test func `The next daemon gets the state that still holds, and no answers for the last daemon`()
    async throws
  {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let recorder = Recorder()
    let gate = Gate()
    recorder.gate.withLock { $0 = gate }
    worker.connect(delegate: recorder)
    let first = try await daemon.peer()
    worker.ready()
    worker.hold(true)
    worker.setStatus("busy")
    worker.setSnapshot(.text("three entries"))
    let data = PurgeableData(Array("content".utf8), worker: worker)
    let inTask = Gate()
    let endTask = Gate()
    let task = Task {
      await withBackgroundTask(named: "upload", worker: worker) {
        inTask.open()
        await endTask.wait()
      }
    }
    await inTask.wait()
    let said: [WorkerMessage] = [
      .ready, .hold(true), .status("busy"), .snapshot(.text("three entries")), .purgeable,
      .beginTask(name: "upload", limitSeconds: nil),
    ]
    #expect(try await daemon.messages(6) == said)
    first.request(7, .didEnterBackground)
    first.close()

    let second = try await daemon.peer()
    #expect(
      Set(try await daemon.messages(6)) == Set(said))
    gate.open()
    try await eventually { recorder.log.all.contains(.didEnterBackground) }
    second.request(7, .willSuspend)
    #expect(try await daemon.message() == .done(id: 7))
    endTask.open()
    await task.value
    #expect(try await daemon.message() == .endTask(name: "upload"))
    worker.setStatus("the end")
    #expect(try await daemon.message() == .status("the end"))
    withExtendedLifetime(data) {}
  }

  @Test func `A worker connects to a daemon that starts later`() async throws {
    let daemon = try KitDaemon(listens: false)
    let worker = Worker(socketPath: daemon.path)
    worker.connect()
    worker.setStatus("alone")
    #expect(!worker.isConnected)
    try daemon.listen()
    _ = try await daemon.peer()
    #expect(try await daemon.message() == .status("alone"))
    #expect(worker.isConnected)
  }

  @Test func `Lines without meaning are skipped, and a line that is too long ends the connection`()
    async throws
  {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    for line in [
      "", "{", "7", "{\"type\":\"dance\"}", "{\"type\":\"memoryWarning\"}", "\u{0}",
      "{\"type\":\"pressure\",\"level\":\"absurd\"}", "{\"type\":\"didResume\",\"id\":1}",
      "{\"type\":\"didResume\",\"id\":1,\"asleepSeconds\":1e400,\"cause\":\"\"}",
      "{\"type\":\"didEnterBackground\",\"id\":1,\"deadlineSeconds\":\"NaN\"}",
    ] { peer.send(Array((line + "\n").utf8)) }
    // The line is sent in pieces. The last piece also has what comes after the line.
    let line = DaemonMessage.request(id: 9, deadlineSeconds: 1, .willSuspend).line
    for byte in line { peer.send([byte]) }
    peer.send(Array("\n".utf8))
    #expect(try await daemon.message() == .done(id: 9))
    #expect(worker.pressure == .normal)
    peer.send([UInt8](repeating: UInt8(ascii: "x"), count: WorkerProtocol.maxLine + 10))
    let next = try await daemon.peer()
    next.request(1, .willSuspend)
    #expect(try await daemon.message() == .done(id: 1))
  }

  @Test func `A worker doesn't wait for a daemon that reads nothing`() async throws {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    // The daemon never accepts. The queue of the listener has room for the connection, and the
    // socket's buffer for some lines.
    worker.connect()
    try await eventually { worker.isConnected }
    let text = String(repeating: "x", count: 200_000)
    for number in 0..<100 { worker.setStatus("\(number) \(text)") }
    // The last status holds on a new connection.
    while try await daemon.message() != .status("99 \(text)") {}
  }

  @Test func `A freed worker object closes its connection`() async throws {
    let daemon = try KitDaemon()
    do {
      let worker = Worker(socketPath: daemon.path)
      worker.connect()
      _ = try await daemon.peer()
    }
    while true { if case .closed = try await daemon.next() { break } }
  }

  @Test func `Lines that several threads send at the same time arrive whole`() async throws {
    let (daemon, worker, _) = try await KitDaemon.connected()
    let text = String(repeating: "ü", count: 3000)
    async let threads: Void = onThreads(4) { thread in
      for number in 0..<250 { worker.setStatus("\(thread) \(number) \(text)") }
    }
    var next = [0, 0, 0, 0]
    while next.reduce(0, +) < 1000 {
      guard case .status(let status) = try await daemon.message() else { continue }
      let parts = status.split(separator: " ")
      let thread = try #require(Int(parts[0]))
      #expect(Int(parts[1]) == next[thread])
      #expect(parts[2] == text)
      next[thread] += 1
    }
    try await threads
  }

  @Test func `A status that is too long for a line is cut and doesn't end the connection`()
    async throws
  {
    let (daemon, worker, _) = try await KitDaemon.connected()
    worker.setStatus(String(repeating: "x", count: WorkerProtocol.maxLine))
    #expect(
      try await daemon.message()
        == .status(String(repeating: "x", count: WorkerProtocol.maxText)))
  }
}
