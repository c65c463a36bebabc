import Lifecycle
import Policy
import Testing

/// What a verb does at once in a state: deeds and answers, joined. In the transitions an earlier
/// request is open. A `refused` there is its answer, unless both requests are refused.
private let matrix: [WorkerState: [Request.Verb: String]] = [
  .terminated: [
    .start: "launch web", .restart: "launch web", .stop: "done", .foreground: "refused",
    .background: "refused",
    .suspend: "refused", .hibernate: "refused", .wake: "refused", .terminate: "done",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .launching: [
    .start: "", .restart: "", .stop: "refused", .foreground: "", .background: "", .suspend: "",
    .hibernate: "", .wake: "done", .terminate: "refused", .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .foreground: [
    .start: "done", .restart: "done", .stop: "terminate web", .foreground: "done",
    .background: "shed web didEnterBackground done", .suspend: "shed web didEnterBackground",
    .hibernate: "shed web didEnterBackground", .wake: "done", .terminate: "terminate web",
    .warn: "shed web memoryWarning",
    .trim: "trim web", .fill: "fill web",
  ],
  .background: [
    .start: "done", .restart: "done", .stop: "terminate web", .foreground: "done",
    .background: "done",
    .suspend: "suspend web", .hibernate: "suspend web", .wake: "done",
    .terminate: "terminate web", .warn: "shed web memoryWarning",
    .trim: "trim web", .fill: "fill web",
  ],
  .suspending: [
    .start: "done", .restart: "done", .stop: "refused", .foreground: "refused",
    .background: "refused",
    .suspend: "", .hibernate: "refused", .wake: "refused", .terminate: "refused",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .suspended: [
    .start: "done", .restart: "done", .stop: "terminate web", .foreground: "resume web",
    .background: "resume web", .suspend: "done", .hibernate: "hibernate web",
    .wake: "resume web", .terminate: "terminate web", .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .hibernating: [
    .start: "done", .restart: "done", .stop: "refused", .foreground: "refused",
    .background: "refused",
    .suspend: "refused", .hibernate: "", .wake: "refused", .terminate: "refused",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .hibernated: [
    .start: "done", .restart: "done", .stop: "resume web", .foreground: "resume web",
    .background: "resume web",
    .suspend: "done", .hibernate: "done", .wake: "resume web", .terminate: "kill web",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .resuming: [
    .start: "done", .restart: "done", .stop: "refused", .foreground: "refused", .background: "",
    .suspend: "refused", .hibernate: "refused", .wake: "", .terminate: "refused",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
  .terminating: [
    .start: "", .restart: "", .stop: "", .foreground: "refused", .background: "refused",
    .suspend: "refused", .hibernate: "refused", .wake: "refused", .terminate: "",
    .warn: "refused",
    .trim: "refused", .fill: "refused",
  ],
]

@Suite("Each verb in each state")
struct VerbTests {
  private func world(in state: WorkerState) -> World {
    var world = World()
    world.add(web, canShed: true, in: state)
    return world
  }

  @Test(
    "Each verb in each state gives the table's directives and answers at once",
    arguments: WorkerState.allCases, Request.Verb.allCases)
  func atOnce(_ state: WorkerState, _ verb: Request.Verb) throws {
    var world = world(in: state)
    let isMode = [.shadow, .enforce, .protect, .unprotect].contains(verb)
    let deeds = world.ask(verb, web).deeds.joined(separator: " ")
    #expect(deeds == (try #require(isMode ? "done" : matrix[state]?[verb])))
  }

  @Test(
    "Each verb in each state is answered once and leads to its goal",
    arguments: WorkerState.allCases, Request.Verb.allCases)
  func atLast(_ state: WorkerState, _ verb: Request.Verb) {
    var world = world(in: state)
    // These verbs set the mode of a worker in any state.
    let isMode = [.shadow, .enforce, .protect, .unprotect].contains(verb)
    let isRefused =
      state == .terminated && ![.start, .restart, .stop, .terminate].contains(verb) && !isMode
      || [.warn, .trim, .fill].contains(verb) && state != .foreground && state != .background
      || state == .terminating && ![.start, .restart, .stop, .terminate].contains(verb) && !isMode
    var todo = world.ask(verb, web)
    // The operation that was under way before ends too.
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
      // A restarted worker returns to where it was: none of these was in the foreground when it
      // ended.
      case .restart where state == .terminating: .background
      case .start, .restart: state == .terminating || state == .terminated ? .foreground : nil
      case .wake, .warn, .trim, .fill, .shadow, .enforce, .protect, .unprotect: nil
      }
    if let goal { #expect(world.state(web) == goal) }
  }

  @Test func `A later, different request replaces the earlier one, and both are answered`() {
    var world = world(in: .foreground)
    world.ask(.hibernate, web)
    let hibernation = world.requests
    world.ask(.foreground, web)
    #expect(
      world.answers[hibernation] == [
        Answer(.refused, "web: replaced by a later `foreground` request")
      ])
    #expect(world.answers[world.requests]?.map(\.code) == [.done])
    #expect(world.state(web) == .foreground)
  }

  @Test func `The answer to a request for an unknown worker names the worker`() {
    var world = World()
    world.ask(.wake, WorkerID("absent"))
    #expect(world.answers[1] == [Answer(.unknownWorker, "there is no worker named absent")])
  }

  @Test func `A request refused because the worker isn't running says how to start it`() {
    var world = world(in: .terminated)
    world.ask(.hibernate, web)
    #expect(
      world.answers[1]?.first?.text
        == "web is not running; start it with `dormouse start web`")
  }

  @Test(
    "A request hibernates a worker of any size, also one that the policy alone would not",
    arguments: [ByteCount.kilobytes(64), .megabytes(60)])
  func personsWord(_ size: ByteCount) {
    var world = World { $0.hibernate.after = .zero }
    world.add(web, size: size, in: .foreground)
    world.obey(world.ask(.suspend, web))
    #expect(world.state(web) == .suspended, "the policy alone doesn't hibernate it")
    world.obey(world.ask(.hibernate, web))
    #expect(world.state(web) == .hibernated)
  }

  @Test(
    "A memory warning is answered with the memory that it freed",
    arguments: [
      (ByteCount.megabytes(12), "freed 8 MB (from 20 MB to 12 MB)"),
      (.megabytes(28), "freed nothing (from 20 MB to 28 MB)"),
    ])
  func freed(after: ByteCount, freed: String) {
    var world = world(in: .foreground)
    world.ask(.warn, web)
    world.send(.shedAnswered(web))
    world.send(.shedFinished(web, before: .megabytes(20), after: after))
    #expect(world.answers[world.requests] == [Answer(.done, "web \(freed)")])
  }

  @Test func `A worker that is stopped during its launch never enters the foreground`() {
    var world = world(in: .launching)
    world.ask(.stop, web)
    #expect(world.send(.launched(web)).deeds == ["terminate web"])
    #expect(world.send(.exited(web, .signaled(15))).deeds == ["done"])
    #expect(world.answers.values.allSatisfy { $0.count == 1 })
  }
}
