import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Lifecycle

@Suite("Counts since the daemon's start") struct RunCountsTests {
  private let web = WorkerID("web")

  private func transition(_ from: WorkerState, _ to: WorkerState) -> Directive {
    .transition(Transition(worker: web, from: from, to: to, cause: .succeeded, at: .zero))
  }

  @Test func `A wake counts by the state that the worker slept in, with the time that it took`() {
    let counts = RunCounts(began: .zero)
    counts.record(
      .wakeNeeded(web, "a connection"), directives: [transition(.hibernated, .resuming)])
    counts.record(
      .resumed(web, .milliseconds(30)), directives: [transition(.resuming, .background)])
    // This worker isn't being woken.
    counts.record(.resumed(web, .seconds(9)), directives: [])
    counts.record(.wakeNeeded(web, "a connection"), directives: [transition(.suspended, .resuming)])
    counts.record(.resumed(web, .seconds(40)), directives: [])
    let times = counts.wakeTimes
    #expect(times.map(\.from) == ["suspended", "hibernated"])
    #expect(times[0].counts.last == 1 && times[0].seconds == 40)
    let index = times[1].bounds.firstIndex(of: 0.05)
    #expect(index.map { times[1].counts[$0] } == 1 && times[1].counts.reduce(0, +) == 1)
    #expect(times[1].seconds == 0.03)
  }

  @Test func `A resume that failed counts as no wake`() {
    let counts = RunCounts(began: .zero)
    counts.record(.wakeNeeded(web, "a timer"), directives: [transition(.hibernated, .resuming)])
    counts.record(
      .resumeFailed(web, "no", intact: false), directives: [transition(.resuming, .terminating)])
    counts.record(.resumed(web, .seconds(1)), directives: [])
    #expect(counts.wakeTimes.allSatisfy { $0.counts.reduce(0, +) == 0 })
    #expect(counts.upSeconds(at: .zero + .seconds(5)) == 5)
  }
}

@Suite("A worker's counts since the daemon's start") struct TallySinceStartTests {
  @Test func `A worker's counts outlive the save of a day, and end with the worker`() throws {
    let scratch = try Scratch()
    let web = WorkerID("web")
    var engine = Engine(policy: LifecyclePolicy(name: "test"))
    let keeper = DayKeeper(directory: "\(scratch.path)/reports", queue: WorkQueue(name: "test")) {
      _, _ in
    }
    var now = Instant.zero
    func send(_ event: Event) {
      now = now + .seconds(1)
      let directives = engine.handle(event, at: now)
      keeper.record(event, directives: directives, engine: engine, at: now)
    }
    keeper.begin(engine, at: now)
    send(.added(web, WorkerProfile(policy: engine.policy)))
    send(.launchFailed(web, "no such file"))
    keeper.save(at: now)
    send(.launchFailed(web, "no such file"))
    #expect(keeper.tally(of: web, at: now).failedLaunches == 2)
    let before = keeper.tally(of: web, at: now).seconds(in: .terminated)
    #expect(keeper.tally(of: web, at: now + .seconds(5)).seconds(in: .terminated) == before + 5)
    send(.removed(web))
    keeper.save(at: now)
    #expect(keeper.tally(of: web, at: now).isEmpty)
  }
}
