import Journal
import Policy
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("The names of events in `on:`") struct HookNamesTests {
  /// The names for one change of a worker's state.
  private func names(
    _ from: WorkerState, _ to: WorkerState, _ cause: Cause
  ) throws -> Set<Hooks.Event> {
    var formatter = EventFormatter()
    let engine = Engine(policy: LifecyclePolicy(name: "test"))
    let transition = Transition(
      worker: WorkerID("web"), from: from, to: to, cause: cause, at: .zero)
    let notices = formatter.notices(of: .deadline, [.transition(transition)], engine, at: .zero)
    return try #require(notices.first).hookEvents
  }

  @Test func `A change of state has its kind's name, the state's, and any`() throws {
    #expect(
      try names(.suspended, .hibernated, .requested(.hibernate)) == [
        .everything, .state, .hibernated,
      ])
    #expect(
      try names(.hibernated, .background, .wakeNeeded("a connection"))
        == [.everything, .state, .background, .woken])
    #expect(
      try names(.launching, .background, .becameReady) == [.everything, .state, .background])
  }

  @Test func `An end by failure is crashed and failed, and no other end is`() throws {
    for cause in [
      Cause.exited(.exited(3)), .exited(.signaled(11)), .exited(.outOfMemory), .watchdog("late"),
    ] {
      let events = try names(.background, .terminated, cause)
      #expect(events.isSuperset(of: [.terminated, .crashed, .failed]), "\(cause)")
    }
    for cause in [Cause.exited(.exited(0)), .requested(.stop)] {
      #expect(try names(.background, .terminated, cause) == [.everything, .state, .terminated])
    }
    #expect(
      try names(.background, .terminated, .pressure(.critical))
        == [.everything, .state, .terminated, .terminatedForMemory])
  }

  @Test func `Each kind of event has a name for hooks`() {
    for kind in Notice.Kind.allCases { #expect(Hooks.Event(rawValue: kind.rawValue) != nil) }
  }
}

@Suite("The queue of commands of `on:`") struct HookQueueTests {
  /// A class, because `#expect` can't call a mutating method.
  private final class Waiting {
    private var queue = HookQueue()
    private var running = 0
    func add(_ entry: HookQueue.Entry) -> Bool { queue.add(entry) }
    func next(at now: Instant) -> HookQueue.Entry? {
      let entry = queue.next(at: now, running: running)
      if entry != nil { running += 1 }
      return entry
    }
    func nextStart(at now: Instant) -> Instant? { queue.nextStart(at: now, running: running) }
    func didEnd() { running -= 1 }
  }

  private func entry(_ event: Hooks.Event = .hibernated, of worker: String?) -> HookQueue.Entry {
    HookQueue.Entry(
      subject: .init(event: event, worker: worker), command: ["true"], input: [], hooks: Hooks())
  }

  @Test func `At most four commands run at once, and the next one starts when one has ended`() {
    let queue = Waiting()
    for number in 0..<6 { #expect(queue.add(entry(of: "bot\(number)"))) }
    for number in 0..<4 { #expect(queue.next(at: .zero)?.subject.worker == "bot\(number)") }
    #expect(queue.next(at: .zero) == nil && queue.nextStart(at: .zero) == nil)
    queue.didEnd()
    #expect(queue.next(at: .zero)?.subject.worker == "bot4")
    #expect(queue.next(at: .zero) == nil)
  }

  @Test func `A command that causes its own event starts ten times, then once a second`() {
    let queue = Waiting()
    var starts = 0
    var now = Instant.zero
    // The command ends at once, and its event occurs again.
    while now < .zero + .seconds(60) {
      _ = queue.add(entry(of: "web"))
      while queue.next(at: now) != nil {
        starts += 1
        queue.didEnd()
        _ = queue.add(entry(of: "web"))
      }
      let next = queue.nextStart(at: now)
      #expect(next.map { $0 > now } == true)
      now = next ?? now + .seconds(60)
    }
    #expect((68...71).contains(starts), "\(starts)")
  }

  @Test func `Another worker's event doesn't wait for one that comes too often`() {
    let queue = Waiting()
    for _ in 0..<20 { _ = queue.add(entry(of: "web")) }
    for _ in 0..<10 {
      #expect(queue.next(at: .zero)?.subject.worker == "web")
      queue.didEnd()
    }
    #expect(queue.next(at: .zero) == nil)
    #expect(queue.add(entry(of: "db")))
    #expect(queue.next(at: .zero)?.subject.worker == "db")
  }

  @Test func `After a pause a worker's event may start ten commands at once again`() {
    let queue = Waiting()
    for round in 0..<2 {
      let now = Instant.zero + .seconds(60 * round)
      for _ in 0..<10 {
        #expect(queue.add(entry(of: "web")) && queue.next(at: now) != nil)
        queue.didEnd()
      }
      #expect(queue.add(entry(of: "web")) && queue.next(at: now) == nil)
      #expect(queue.nextStart(at: now) == now + .seconds(1))
      #expect(queue.next(at: now + .seconds(1)) != nil)
      queue.didEnd()
    }
  }

  @Test func `At most 32 commands of one worker's event wait, and at most 128 in all`() {
    let queue = Waiting()
    #expect((0..<100).count { _ in queue.add(entry(of: "web")) } == 32)
    #expect((0..<200).count { queue.add(entry(of: "bot\($0)")) } == 96)
  }

  @Test func `Dropped commands are logged in one line, with their number and the last event`() {
    var queue = HookQueue()
    for _ in 0..<35 { _ = queue.add(entry(of: "web")) }
    let line = queue.drainLosses()
    #expect(
      line
        == "3 events started no command (on): too many wait (last: hibernated of web)")
    #expect(queue.dropped == 0)
  }
}
