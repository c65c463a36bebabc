import TestSupport
import Testing
import WorkerKit
import WorkerProtocol

@Suite(.timeLimit(.minutes(10))) struct EventTests {
  private let warning = DaemonMessage.Request.memoryWarning(
    level: "urgent", footprintBytes: 1 << 24)

  @Test func `The delegate receives all events in their order, and each request is answered`()
    async throws
  {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let recorder = Recorder()
    worker.connect(delegate: recorder)
    let peer = try await daemon.peer()
    peer.request(1, .didEnterBackground)
    peer.request(2, warning)
    peer.request(3, .willSuspend)
    peer.send(.didResume(id: 4, asleepSeconds: 3600.5, cause: "a connection"))
    peer.send(.didEnterForeground(id: 5))
    peer.send(.pressure(level: "critical"))
    peer.request(6, .willTerminate(reason: "memory"))
    let answers = Set(try await daemon.messages(4))
    #expect(answers == [.done(id: 1), .done(id: 2), .done(id: 3), .done(id: 6)])
    #expect(
      recorder.log.all == [
        .didEnterBackground,
        .didReceiveMemoryWarning(MemoryWarning(level: .urgent, footprintBytes: 1 << 24)),
        .willSuspend, .didResume(Resumption(asleep: .seconds(3600.5), cause: "a connection")),
        .didEnterForeground, .pressureChanged(.critical), .willTerminate(reason: "memory"),
      ])
    #expect(worker.pressure == .critical)
    #expect(
      recorder.deadlines.all.map { $0 == nil } == [false, false, false, true, true, true, false])
  }

  @Test func `The answer waits for the delegate, each loop and each object`() async throws {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let recorder = Recorder()
    let gates = (delegate: Gate(), loop: Gate(), object: Gate())
    recorder.gate.withLock { $0 = gates.delegate }
    let object = Recorder()
    worker.onMemoryWarning(of: object) { _ in await gates.object.wait() }
    let loopHas = Gate()
    let loopRuns = Gate()
    let loop = Task {
      var iterator = worker.events.makeAsyncIterator()
      loopRuns.open()
      while await iterator.next() != nil {
        loopHas.open()
        await gates.loop.wait()
      }
    }
    await loopRuns.wait()
    worker.connect(delegate: recorder)
    let peer = try await daemon.peer()
    peer.request(1, warning)
    await loopHas.wait()
    // A listener that has finished doesn't end the wait for the others: otherwise an answer would
    // come before the next message.
    worker.setStatus("one")
    #expect(try await daemon.message() == .status("one"))
    gates.delegate.open()
    try await eventually { recorder.log.all.count == 1 }
    worker.setStatus("two")
    #expect(try await daemon.message() == .status("two"))
    gates.object.open()
    worker.setStatus("three")
    #expect(try await daemon.message() == .status("three"))
    gates.loop.open()
    #expect(try await daemon.message() == .done(id: 1))
    loop.cancel()
  }

  @Test func `A loop over events that has ended or was cancelled delays no answer`() async throws {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let ready = (Gate(), Gate())
    let breaking = Task {
      var iterator = worker.events.makeAsyncIterator()
      ready.0.open()
      return await iterator.next()
    }
    let stuck = Gate()
    let cancelled = Task {
      var iterator = worker.events.makeAsyncIterator()
      ready.1.open()
      _ = await iterator.next()
      stuck.open()
      return await iterator.next()
    }
    await ready.0.wait()
    await ready.1.wait()
    worker.connect()
    let peer = try await daemon.peer()
    peer.request(1, .didEnterBackground)
    #expect(try await daemon.message() == .done(id: 1))
    #expect(await breaking.value == .didEnterBackground)
    await stuck.wait()
    cancelled.cancel()
    #expect(await cancelled.value == nil)
    peer.request(2, .willSuspend)
    #expect(try await daemon.message() == .done(id: 2))
  }

  @Test func `An answer that is later than its deadline is still sent`() async throws {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let recorder = Recorder()
    let gate = Gate()
    recorder.gate.withLock { $0 = gate }
    worker.connect(delegate: recorder)
    let peer = try await daemon.peer()
    peer.request(1, .didEnterBackground, deadline: 0)
    peer.request(2, .willSuspend, deadline: -1e300)
    // By now the deadlines have passed, and no answer has been sent.
    worker.setStatus("late")
    #expect(try await daemon.message() == .status("late"))
    gate.open()
    #expect(Set(try await daemon.messages(2)) == [.done(id: 1), .done(id: 2)])
    let deadlines = recorder.deadlines.all.compactMap(\.self)
    #expect(deadlines.count == 2 && deadlines.allSatisfy { $0 <= .now })
  }

  @Test func `An object is notified while it lives and its subscription isn't cancelled`()
    async throws
  {
    let worker = Worker(socketPath: nil)
    let log = Log<String>()
    var object: Recorder? = Recorder()
    weak let observer = object
    let second = Recorder()
    if let object { worker.onMemoryWarning(of: object) { _ in log.append("first") } }
    let subscription = worker.onMemoryWarning(of: second) { _ in log.append("second") }
    worker.onEnterBackground(of: second) { _ in log.append("background") }
    await worker.simulateMemoryWarning()
    #expect(log.all == ["first", "second"])
    object = nil
    #expect(observer == nil)
    await worker.simulateMemoryWarning()
    #expect(log.all == ["first", "second", "second"])
    subscription.cancel()
    await worker.simulateMemoryWarning()
    await worker.simulateEnteringBackground()
    #expect(log.all == ["first", "second", "second", "background"])
  }

  @Test func `A worker without a daemon works, and its messages are dropped`() async throws {
    let worker = Worker(socketPath: nil)
    let recorder = Recorder()
    worker.connect(delegate: recorder)
    worker.ready()
    worker.hold(true)
    worker.setStatus("busy")
    #expect(worker.setSnapshot(.text("three entries")))
    #expect(!worker.isConnected)
    let result = await withBackgroundTask(named: "work", worker: worker) { worker.openTasks }
    #expect(result == ["work"])
    await worker.simulateMemoryWarning(level: .critical)
    guard case .didReceiveMemoryWarning(let warning) = recorder.log.all.first else {
      throw TestFailure("\(recorder.log.all)")
    }
    #expect(warning.level == .critical)
    #expect(warning.footprintBytes > 0)
  }

  @Test @MainActor func `A delegate that is bound to an actor is called on that actor`()
    async throws
  {
    let worker = Worker(socketPath: nil)
    let delegate = MainDelegate()
    worker.connect(delegate: delegate)
    await worker.simulateMemoryWarning()
    #expect(delegate.warnings == 1)
  }

  @Test func `A handler that never returns doesn't keep caches from being emptied`() async throws {
    let worker = Worker(socketPath: nil)
    let never = Gate()
    let called = Gate()
    let object = Recorder()
    worker.onMemoryWarning(of: object) { _ in
      called.open()
      await never.wait()
    }
    let cache = MemoryCache<Int, String>(worker: worker)
    let photo = Unloadable(worker: worker) { "photo" }
    let first = Task { await worker.simulateMemoryWarning() }
    await called.wait()
    cache[1] = "a"
    _ = photo.value
    let second = Task { await worker.simulateMemoryWarning() }
    while cache.count > 0 || photo.isLoaded { try await Task.sleep(for: .milliseconds(1)) }
    never.open()
    _ = await (first.value, second.value)
    withExtendedLifetime(object) {}
  }

  @Test
  func `An object that a subscription holds may subscribe and cancel while it is deinitialized`()
    async throws
  {
    final class Owner: Sendable {
      let worker: Worker
      init(_ worker: Worker) { self.worker = worker }
      deinit { worker.onMemoryWarning(of: worker) { _ in }.cancel() }
    }
    let worker = Worker(socketPath: nil)
    let object = Recorder()
    var owner: Owner? = Owner(worker)
    let subscription = worker.onMemoryWarning(of: object) { [owner] _ in
      withExtendedLifetime(owner) {}
    }
    worker.setSnapshotProvider { [owner] in
      withExtendedLifetime(owner) {}
      return nil
    }
    owner = nil
    subscription.cancel()
    worker.setSnapshotProvider(nil)
    await worker.simulateMemoryWarning()
    withExtendedLifetime(object) {}
  }
}

@MainActor private final class MainDelegate: WorkerDelegate {
  var warnings = 0
  func didReceiveMemoryWarning(_ warning: MemoryWarning) async {
    MainActor.assertIsolated()
    warnings += 1
  }
}
