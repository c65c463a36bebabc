import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerKit

@Suite(.timeLimit(.minutes(10))) struct TaskTests {
  private struct Failure: Error {}

  @Test
  func
    `A background task ends with its scope, whether that returns, throws or is cancelled`()
    async throws
  {
    let (daemon, worker, _) = try await KitDaemon.connected()

    let value = await withBackgroundTask(named: "a", limit: .milliseconds(1500), worker: worker) {
      7
    }
    #expect(value == 7)
    #expect(
      try await daemon.messages(2) == [
        .beginTask(name: "a", limitSeconds: 1.5), .endTask(name: "a"),
      ])

    await #expect(throws: Failure.self) {
      try await withBackgroundTask(named: "b", worker: worker) { throw Failure() }
    }
    #expect(
      try await daemon.messages(2) == [
        .beginTask(name: "b", limitSeconds: nil), .endTask(name: "b"),
      ])

    let begun = Gate()
    let cancelled = Task {
      try await withBackgroundTask(named: "c", worker: worker) {
        begun.open()
        try await Task.sleep(for: .seconds(3600))
      }
    }
    await begun.wait()
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(
      try await daemon.messages(2) == [
        .beginTask(name: "c", limitSeconds: nil), .endTask(name: "c"),
      ])
    #expect(worker.openTasks.isEmpty)
  }

  @Test func `A background task whose time is over is cancelled, and its handler is called`()
    async throws
  {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    let log = Log<String>()
    let handled = Gate()
    let task = Task {
      await withBackgroundTask(named: "upload", limit: .seconds(1), worker: worker) {
        do { try await Task.sleep(for: .seconds(3600)) } catch { log.append("cancelled") }
        await handled.wait()
      } onExpiration: {
        log.append(Worker.deadline == nil ? "no deadline" : "expired")
        // The task's handler has ended here, but not its work.
      }
    }
    #expect(try await daemon.message() == .beginTask(name: "upload", limitSeconds: 1))
    peer.request(5, .taskExpired(task: "upload"))
    #expect(try await daemon.message() == .done(id: 5))
    try await eventually { Set(log.all) == ["cancelled", "expired"] }
    #expect(worker.openTasks == ["upload"])
    // A second expiration of a task changes nothing, and neither does one of an unknown task.
    peer.request(6, .taskExpired(task: "upload"))
    #expect(try await daemon.message() == .done(id: 6))
    peer.request(7, .taskExpired(task: "sleep"))
    #expect(try await daemon.message() == .done(id: 7))
    handled.open()
    await task.value
    #expect(try await daemon.message() == .endTask(name: "upload"))
    #expect(log.all.count == 2)
  }

  @Test func `Two background tasks of one name are distinguished by a number`() async throws {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    let gates = [Gate(), Gate()]
    let expired = Log<Int>()
    let tasks = try await [0, 1].asyncMap { number in
      let begun = Gate()
      let task = Task {
        await withBackgroundTask(named: "sync", worker: worker) {
          begun.open()
          await gates[number].wait()
        } onExpiration: {
          expired.append(number)
        }
      }
      await begun.wait()
      return task
    }
    #expect(worker.openTasks == ["sync", "sync #2"])
    #expect(
      worker.tasks.summary("exit")
        == "WorkerKit: background tasks still open at exit: \"sync\", \"sync #2\"")
    _ = try await daemon.messages(2)
    peer.request(1, .taskExpired(task: "sync #2"))
    #expect(try await daemon.message() == .done(id: 1))
    #expect(expired.all == [1])
    gates[1].open()
    await tasks[1].value
    #expect(try await daemon.message() == .endTask(name: "sync #2"))
    gates[0].open()
    await tasks[0].value
    #expect(try await daemon.message() == .endTask(name: "sync"))
    #expect(worker.tasks.summary("exit") == nil)
  }

  @Test func `A thousand background tasks at the same time leave none open`() async throws {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    for id in 1...100 {
      peer.request(UInt64(id), .taskExpired(task: id == 1 ? "work" : "work #\(id)"))
    }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 {
        group.addTask {
          await withBackgroundTask(named: "work", worker: worker) { await Task.yield() }
        }
      }
    }
    #expect(worker.openTasks.isEmpty)
    var open: Set<String> = []
    var ended = 0
    while ended < 1000 {
      switch try await daemon.message() {
      case .beginTask(let name, _): #expect(open.insert(name).inserted)
      case .endTask(let name):
        #expect(open.remove(name) != nil)
        ended += 1
      default: break
      }
    }
    #expect(open.isEmpty)
  }

  @Test
  func
    `The next daemon gets the end of a task and of a hold, as the last one may not have read it`()
    async throws
  {
    let (daemon, worker, first) = try await KitDaemon.connected()
    worker.hold(true)
    await withBackgroundTask(named: "upload", worker: worker) {}
    worker.hold(false)
    #expect(
      try await daemon.messages(4) == [
        .hold(true), .beginTask(name: "upload", limitSeconds: nil), .endTask(name: "upload"),
        .hold(false),
      ])
    first.close()
    _ = try await daemon.peer()
    #expect(try await daemon.messages(2) == [.hold(false), .endTask(name: "upload")])
  }

  @Test func `A background task whose time is over is reported to the next daemon as ended`()
    async throws
  {
    let (daemon, worker, first) = try await KitDaemon.connected()
    let end = Gate()
    let task = Task {
      await withBackgroundTask(named: "deaf", worker: worker) { await end.wait() }
    }
    #expect(try await daemon.message() == .beginTask(name: "deaf", limitSeconds: nil))
    first.request(1, .taskExpired(task: "deaf"))
    #expect(try await daemon.message() == .done(id: 1))
    #expect(worker.openTasks == ["deaf"])
    first.close()
    _ = try await daemon.peer()
    worker.setStatus("next")
    #expect(try await daemon.messages(2) == [.endTask(name: "deaf"), .status("next")])
    end.open()
    await task.value
  }

  @Test func `A background task whose name can't be shown is known by the name that was sent`()
    async throws
  {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    for name in ["a\u{1B}[2J", String(repeating: "\u{7}ü", count: 100_000)] {
      let expired = Gate()
      let task = Task {
        await withBackgroundTask(named: name, worker: worker) {
          await expired.wait()
        } onExpiration: {
          expired.open()
        }
      }
      guard case .beginTask(let said, _) = try await daemon.message() else {
        throw TestFailure("no task")
      }
      #expect(said == WorkerProtocol.shown(said))
      peer.request(1, .taskExpired(task: said))
      await task.value
      #expect(
        Set(try await daemon.messages(2)) == [.done(id: 1), .endTask(name: said)])
    }
  }

  @Test func `An object that a task's handler holds may use tasks while it is deinitialized`() async
  {
    final class Owner: Sendable {
      let worker: Worker
      init(_ worker: Worker) { self.worker = worker }
      deinit { _ = worker.openTasks }
    }
    let worker = Worker(socketPath: nil)
    let owner = Owner(worker)
    await withBackgroundTask(named: "a", worker: worker) {
    } onExpiration: { [owner] in
      withExtendedLifetime(owner) {}
    }
    #expect(worker.openTasks.isEmpty)
  }
}

extension Sequence {
  fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async throws -> [T] {
    var results: [T] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
