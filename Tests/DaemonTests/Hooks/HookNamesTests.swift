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

  @Test("A change of state has its kind's name, the state's, and `any`")
  func states() throws {
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

  @Test("An end by failure is `crashed` and `failed`; one on request or with status 0 is neither")
  func ends() throws {
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

  @Test("Each kind of event has a name in `on:`")
  func kinds() {
    for kind in Notice.Kind.allCases { #expect(Hooks.Event(rawValue: kind.rawValue) != nil) }
  }
}
