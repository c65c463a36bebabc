import Lifecycle
import Policy
import Testing

/// What a verb does at once in a state: deeds and answers, joined; in the transitions an earlier
/// request is open, and it is the one that a `refused` there overtakes, unless both are.
private let matrix: [WorkerState: [Request.Verb: String]] = [
  .terminated: [
    .start: "launch web", .stop: "done", .foreground: "refused", .background: "refused",
    .suspend: "refused", .hibernate: "refused", .wake: "refused", .terminate: "done",
    .warn: "refused",
  ],
  .launching: [
    .start: "", .stop: "refused", .foreground: "", .background: "", .suspend: "",
    .hibernate: "", .wake: "done", .terminate: "refused", .warn: "refused",
  ],
  .foreground: [
    .start: "done", .stop: "terminate web", .foreground: "done",
    .background: "shed web didEnterBackground done", .suspend: "shed web didEnterBackground",
    .hibernate: "shed web didEnterBackground", .wake: "done", .terminate: "terminate web",
    .warn: "shed web memoryWarning",
  ],
  .background: [
    .start: "done", .stop: "terminate web", .foreground: "done", .background: "done",
    .suspend: "suspend web", .hibernate: "suspend web", .wake: "done",
    .terminate: "terminate web", .warn: "shed web memoryWarning",
  ],
  .suspending: [
    .start: "done", .stop: "refused", .foreground: "refused", .background: "refused",
    .suspend: "", .hibernate: "refused", .wake: "refused", .terminate: "refused",
    .warn: "refused",
  ],
  .suspended: [
    .start: "done", .stop: "terminate web", .foreground: "resume web",
    .background: "resume web", .suspend: "done", .hibernate: "hibernate web",
    .wake: "resume web", .terminate: "terminate web", .warn: "refused",
  ],
  .hibernating: [
    .start: "done", .stop: "refused", .foreground: "refused", .background: "refused",
    .suspend: "refused", .hibernate: "", .wake: "refused", .terminate: "refused",
    .warn: "refused",
  ],
  .hibernated: [
    .start: "done", .stop: "resume web", .foreground: "resume web", .background: "resume web",
    .suspend: "done", .hibernate: "done", .wake: "resume web", .terminate: "kill web",
    .warn: "refused",
  ],
  .resuming: [
    .start: "done", .stop: "refused", .foreground: "refused", .background: "",
    .suspend: "refused", .hibernate: "refused", .wake: "", .terminate: "refused",
    .warn: "refused",
  ],
  .terminating: [
    .start: "", .stop: "", .foreground: "refused", .background: "refused",
    .suspend: "refused", .hibernate: "refused", .wake: "refused", .terminate: "",
    .warn: "refused",
  ],
]

@Suite("Each verb in each state")
struct VerbTests {
  private func world(in state: WorkerState) -> World {
    var world = World()
    world.add(web, canShed: true)
    world.bring(web, to: state)
    return world
  }

  @Test("does this at once", arguments: WorkerState.allCases, Request.Verb.allCases)
  func atOnce(_ state: WorkerState, _ verb: Request.Verb) throws {
    var world = world(in: state)
    let isMode = verb == .shadow || verb == .enforce
    let deeds = world.ask(verb, web).deeds.joined(separator: " ")
    #expect(deeds == (try #require(isMode ? "done" : matrix[state]?[verb])))
  }

  @Test("ends where it should", arguments: WorkerState.allCases, Request.Verb.allCases)
  func atLast(_ state: WorkerState, _ verb: Request.Verb) {
    var world = world(in: state)
    // These say something of a worker in whatever state.
    let isMode = verb == .shadow || verb == .enforce
    let isRefused =
      state == .terminated && ![.start, .stop, .terminate].contains(verb) && !isMode
      || verb == .warn && state != .foreground && state != .background
      || state == .terminating && ![.start, .stop, .terminate].contains(verb) && !isMode
    var todo = world.ask(verb, web)
    // What was under way before comes to its end too.
    switch state {
    case .launching: todo += [.launch(web)]
    case .suspending: todo += [.suspend(web)]
    case .hibernating: todo += [.hibernate(web)]
    case .resuming: todo += [.resume(web)]
    case .terminating: todo += [.terminate(web)]
    default: break
    }
    world.obey(todo)
    let answers = world.answers[world.requests] ?? []
    #expect(answers.map(\.code) == [isRefused ? .refused : .done], "\(answers)")
    for request in 1...world.requests { #expect(world.answers[request]?.count == 1) }
    guard !isRefused else { return }
    let goal: WorkerState? =
      switch verb {
      case .stop, .terminate: .terminated
      case .foreground: .foreground
      case .background: .background
      case .suspend: state == .hibernated || state == .hibernating ? nil : .suspended
      case .hibernate: .hibernated
      case .start: state == .terminating || state == .terminated ? .foreground : nil
      case .wake, .warn, .shadow, .enforce: nil
      }
    if let goal { #expect(world.state(web) == goal) }
  }

  @Test("A later, other wish overtakes the earlier one, and both are answered")
  func overtaking() {
    var world = world(in: .foreground)
    world.ask(.hibernate, web)
    let hibernation = world.requests
    world.ask(.foreground, web)
    #expect(
      world.answers[hibernation] == [Answer(.refused, "web: overtaken by a later `foreground`")])
    #expect(world.answers[world.requests]?.map(\.code) == [.done])
    #expect(world.state(web) == .foreground)
  }

  @Test("An unknown worker is no secret")
  func unknown() {
    var world = World()
    world.ask(.wake, WorkerID("nobody"))
    #expect(world.answers[1] == [Answer(.unknownWorker, "there is no worker named nobody")])
  }

  @Test("A terminated worker's refusal says how to start it")
  func notRunning() {
    var world = world(in: .terminated)
    world.ask(.hibernate, web)
    #expect(
      world.answers[1]?.first?.text
        == "web is not running; start it with `dormouse start web`")
  }

  @Test("A person may hibernate what the policy alone would not, but not what is too big")
  func personsWord() {
    var policy = LifecyclePolicy()
    policy.hibernate.after = nil
    var world = World(policy)
    world.add(web, size: .kilobytes(64))
    world.bring(web, to: .foreground)
    world.obey(world.ask(.hibernate, web))
    #expect(world.state(web) == .hibernated)

    let big = WorkerID("big")
    world.add(big, size: .megabytes(60))
    world.bring(big, to: .foreground)
    world.obey(world.ask(.hibernate, big))
    #expect(world.state(big) == .suspended)
    let text = "its footprint of 60 MB is over hibernate.max_footprint, 16 MB"
    #expect(world.answers[world.requests] == [Answer(.refused, "big stays suspended: \(text)")])
    #expect(world.verdict(big) == text)
  }

  @Test("A warning is answered with what it gave back")
  func warning() {
    var world = world(in: .foreground)
    world.ask(.warn, web)
    world.send(.shedAnswered(web))
    world.send(.shedFinished(web, before: .megabytes(20), after: .megabytes(12)))
    #expect(
      world.answers[world.requests]
        == [Answer(.done, "web gave back 8 MB (from 20 MB to 12 MB)")])
  }

  @Test("A launch that is stopped never comes to the front")
  func stoppedLaunch() {
    var world = world(in: .launching)
    world.ask(.stop, web)
    #expect(world.send(.launched(web)).deeds == ["terminate web"])
    #expect(world.send(.exited(web, .signaled(15))).deeds == ["done"])
    #expect(world.answers.values.allSatisfy { $0.count == 1 })
  }
}
