import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Sockets that the daemon opens for workers") struct ListeningSocketsTests {
  private let world: ListeningWorld

  init() throws { world = try ListeningWorld() }

  private func tcp(_ port: UInt16, _ name: String = "http") -> ListenSocket {
    ListenSocket(name: name, address: .tcp(host: "127.0.0.1", port: port))
  }

  private func isOpen(_ port: UInt16) -> Bool { (try? LoopbackClient(port)) != nil }
  private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  // MARK: a connection starts the worker

  @Test func `A connection starts a worker once, and others wait in the queue`() throws {
    let port = try freePort()
    world.add("web", tcp(port))
    world.open()
    #expect(world.logged.isEmpty && world.watches.active == 1)
    let first = try world.connect(port)
    let second = try LoopbackClient(port)
    try world.watches.serve()
    #expect(world.started == ["web"] && world.watches.active == 0)
    #expect(!first.readToEnd() && !second.readToEnd())
  }

  @Test func `A connection that still waits after five seconds starts the worker again`() throws {
    let port = try freePort()
    let worker = world.add("web", tcp(port))
    world.open()
    try world.connect(port)
    world.end(worker)
    world.timers.advance(by: .seconds(5))
    try world.watches.serveOnce()
    #expect(world.started == ["web", "web"])
    world.end(worker)
    worker.process = try .forTest()
    world.timers.advance(by: .seconds(5))
    #expect(world.watches.active == 0)
  }

  @Test func `A worker that never accepts its connection is started 5 times in 10 s`() throws {
    let port = try freePort()
    let worker = world.add("web", tcp(port))
    world.open()
    try world.connect(port)
    for _ in 0..<6 {
      world.end(worker)
      world.sockets.offer(worker)
      try world.watches.serveOnce()
    }
    #expect(world.started.count == 5 && world.watches.active == 0)
    #expect(world.logged.last?.contains("ended 5 times without accepting its connection") == true)
    world.timers.advance(by: .seconds(11))
    world.sockets.offer(worker)
    try world.watches.serveOnce()
    #expect(world.started.count == 6, "after that it has another chance")
  }

  @Test func `No connection is offered to a running, failed or ending worker`() throws {
    let worker = world.add("web", tcp(try freePort()))
    let other = world.add("api", tcp(try freePort()))
    worker.process = try .forTest()
    var isOpen = false
    world.open { isOpen = true }
    try world.turn { isOpen }
    #expect(world.watches.active == 1, "the other one's")
    worker.process = nil
    world.sockets.offer(worker)
    #expect(world.watches.active == 2)
    world.driver.request(.start, worker.id) { _ in }
    world.driver.send(.launchFailed(worker.id, "no such program"))
    _ = try world.sockets.listeners(for: worker, as: nil)
    world.sockets.offer(worker)
    #expect(world.watches.active == 1)
    _ = try world.sockets.listeners(for: other, as: nil)
    world.restarts.close()
    world.sockets.offer(other)
    #expect(world.watches.active == 0)
  }

  // MARK: launches

  @Test func `A launch gets all sockets in order, and they aren't watched meanwhile`() throws {
    let worker = world.add("web", tcp(try freePort(), "a"), tcp(try freePort(), "b"))
    world.open()
    #expect(world.watches.active == 2)
    worker.configuration.listen.reverse()
    let third = tcp(try freePort(), "c")
    worker.configuration.listen.append(third)
    let given = try world.sockets.listeners(for: worker, as: nil)
    #expect(given.map(\.socket.name) == ["b", "a", "c"] && world.watches.active == 0)
    let later = try world.sockets.listeners(for: worker, as: nil)
    #expect(zip(given, later).allSatisfy { $0 === $1 }, "they outlive a launch")
  }

  // MARK: refusals

  @Test func `An error about another worker's port names it, and fails a launch`() throws {
    let port = try freePort()
    let first = world.add("first", tcp(port))
    let second = world.add(
      "second", ListenSocket(name: "", address: .tcp(host: "0.0.0.0", port: port)))
    world.sockets.openListeners(of: [first.configuration, second.configuration])
    let refusal = "can't listen at 0.0.0.0:\(port): in use by worker `first`"
    #expect(world.logged == ["second: \(refusal)"])
    let error = #expect(throws: ListenError.self) {
      try world.sockets.listeners(for: second, as: nil)
    }
    #expect(error?.description == refusal)
    world.sockets.closeListeners(of: first)
    #expect(try world.sockets.listeners(for: second, as: nil).count == 1)
  }

  @Test func `A port that another program has doesn't prevent the worker's other sockets`() throws {
    let other = try TestListener()
    let port = try freePort()
    world.add("web", tcp(port, "a"), tcp(other.port, "b"))
    world.open()
    #expect(
      world.logged == ["web: can't listen at 127.0.0.1:\(other.port): in use by another program"])
    try world.connect(port)
    #expect(world.started == ["web"])
  }

  @Test func `At the start all sockets are open before workers are started`() throws {
    let (port, path) = (try freePort(), world.scratch.uniquePath("sock"))
    world.add("web", tcp(port), ListenSocket(name: "u", address: .unix(path)))
    var isOver = false
    world.open { isOver = true }
    #expect(!isOver, "a file isn't made on the loop, which would wait")
    try world.turn { isOver }
    #expect(isOpen(port) && exists(path))
  }

  @Test func `A file system that doesn't respond delays the start by only one second`() throws {
    let world = try ListeningWorld(threads: 1)
    let answers = OneTimeEvent()
    let isBusy = world.threads.submitIfIdle(about: "a dead file system") {
      answers.wait()
      return {}
    }
    let path = world.scratch.uniquePath("sock")
    let worker = world.add("web", ListenSocket(name: "u", address: .unix(path)))
    var starts = 0
    world.open { starts += 1 }
    world.timers.advance(by: .seconds(1))
    #expect(isBusy && starts == 1)
    var refusals: [String?] = []
    world.sockets.openFiles(of: worker, as: nil) { refusals.append($0) }
    #expect(refusals.isEmpty, "its launch waits for the same outcome")
    answers.raise()
    try world.turn { !refusals.isEmpty }
    #expect(refusals == [nil] && exists(path) && starts == 1)
  }

  @Test func `A file at the path of a socket stays, and the error names it`() throws {
    let path = try world.scratch.write("web.sock", "precious")
    let worker = world.add("web", ListenSocket(name: "", address: .unix(path)))
    try world.relisten(worker) { !world.logged.isEmpty }
    #expect(world.logged.first?.contains("is not a socket") == true)
    #expect(try readText(path) == "precious")
  }

  // MARK: reloads

  @Test func `A reload opens new sockets, closes removed ones, and leaves others`() throws {
    let (kept, dropped, added) = (try freePort(), try freePort(), try freePort())
    let path = world.scratch.uniquePath("sock")
    let worker = world.add("web", tcp(kept, "kept"), tcp(dropped, "dropped"))
    world.open()
    let first = try world.sockets.listeners(for: worker, as: nil)[0]
    worker.configuration.listen = [
      ListenSocket(name: "file", address: .unix(path)), tcp(kept, "kept"), tcp(added, "added"),
    ]
    try world.relisten(worker) { world.watches.active == 3 }
    #expect(!isOpen(dropped) && isOpen(added) && exists(path))
    let names = try world.sockets.listeners(for: worker, as: nil).map(\.socket.name)
    #expect(names == ["file", "kept", "added"])
    #expect(try world.sockets.listeners(for: worker, as: nil)[1] === first)
    worker.configuration.listen = []
    try world.relisten(worker) { !exists(path) }
    #expect(world.watches.active == 0 && !isOpen(added))
  }

  @Test func `A launch that begins while sockets are being opened opens them itself`() throws {
    let port = try freePort()
    let worker = world.add("web", tcp(port))
    world.workers.launching = [worker.id]
    world.sockets.relisten(worker)
    #expect(!isOpen(port) && world.watches.active == 0)
  }

  // MARK: end

  @Test func `The sockets of a removed worker are closed, and their files removed`() throws {
    let (port, path) = (try freePort(), world.scratch.uniquePath("sock"))
    let worker = world.add("web", tcp(port), ListenSocket(name: "u", address: .unix(path)))
    try world.relisten(worker) { world.watches.active == 2 }
    world.sockets.closeListeners(of: worker)
    world.sockets.closeListeners(of: worker)
    #expect(world.watches.active == 0 && !isOpen(port))
    #expect(try eventually { !exists(path) })
    world.sockets.offer(worker)
    #expect(world.watches.active == 0)
  }

  @Test func `A socket that is made while its worker is removed leaves no file`() throws {
    let path = world.scratch.uniquePath("sock")
    let worker = world.add("web", ListenSocket(name: "u", address: .unix(path)))
    var isMade = false
    world.sockets.openFiles(of: worker, as: nil) { _ in isMade = true }
    // The file exists before the loop is informed.
    #expect(try eventually { exists(path) })
    world.sockets.closeListeners(of: worker)
    world.workers[worker.id] = nil
    try world.turn { isMade }
    #expect(try eventually { !exists(path) })
    #expect(world.watches.active == 0)
  }
}
