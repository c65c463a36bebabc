import Lifecycle
import Policy

/// Gets every event that the engine has handled, before its directives are executed; resumes are executed before it.
protocol EngineObserver: AnyObject {
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant)
}

/// The only owner of the engine. It gives the engine the time and events, one after the other, passes on its
/// directives, and returns its answers to the clients that asked. It knows no worker and no file. Belongs to
/// the loop's thread.
final class EngineDriver {
  private var engine: Engine
  private let clock: any Timers
  private let pump = EventPump<Event>()
  private let replies: RequestReplies
  private var carryOut: (Directive) -> Void = { _ in }
  private var engineIsQuiet: () -> Void = {}
  private var observers: [any EngineObserver] = []
  /// How long the machine had slept in all at the last event.
  private var slept: Duration
  /// The two clocks aren't read at the same instant.
  private static let minSleep = Duration.milliseconds(100)

  /// - Parameter replies: how answers reach the clients that asked.
  init(_ engine: Engine, clock: any Timers, replies: RequestReplies) {
    self.engine = engine
    self.clock = clock
    self.replies = replies
    slept = clock.slept
  }

  /// Before the first event.
  ///
  /// - Parameters:
  ///   - carryOut: what the engine decides; each failure comes back as an event.
  ///   - whenQuiet: every event so far has been handled. Events that are sent then are handled, and then it is called
  ///     again.
  func connect(
    _ observers: [any EngineObserver], carryOut: @escaping (Directive) -> Void = { _ in },
    whenQuiet: @escaping () -> Void = {}
  ) {
    self.observers = observers
    self.carryOut = carryOut
    engineIsQuiet = whenQuiet
  }

  /// What the engine knows now. It changes with every event.
  var state: Engine { _read { yield engine } }

  /// No event waits. If false, `whenQuiet` will be called.
  var isQuiet: Bool { pump.isQuiet }

  /// When `send(.deadline)` is due; nil: nothing has a deadline.
  var nextDeadline: Instant? { engine.nextDeadline }

  /// Sends `.deadline` where one has passed.
  func passDeadlines() {
    if let deadline = engine.nextDeadline, deadline <= clock.now { send(.deadline) }
  }

  /// Gives the engine an event, and has its directives executed before this returns. Sent from within the
  /// execution of another event's directives, it waits for the end of that.
  func send(_ event: Event) {
    pump.send(event) { [self] next in
      let total = clock.slept
      if total - slept >= Self.minSleep {
        let time = total - slept
        slept = total
        handle(.machineSlept(time))
      }
      handle(next)
    } whenQuiet: { [self] in
      engineIsQuiet()
    }
  }

  private func handle(_ event: Event) {
    let now = clock.now
    let directives = clock.step("the engine") { engine.handle(event, at: now) }
    // A client waits for a resume. The engine stays as it is while directives are executed.
    let urgent = directives.lastIndex(where: \.isResume).map { $0 + 1 } ?? 0
    execute(directives[..<urgent])
    clock.step("the journal") {
      for observer in observers {
        observer.handled(event, directives: directives, engine: engine, at: now)
      }
    }
    execute(directives[urgent...])
  }

  private func execute(_ directives: ArraySlice<Directive>) {
    for directive in directives {
      clock.step("\(directive)") { execute(directive) }
      // If the time of two hundred workers is over at once, each is checked by itself.
      clock.checkpoint()
    }
  }

  private func execute(_ directive: Directive) {
    if case .answer(let request, let answer) = directive {
      replies.deliver(answer, to: request)
    } else {
      carryOut(directive)
    }
  }

  /// Asks the engine for a client or a component.
  ///
  /// - Parameters:
  ///   - asked: when; nil: now.
  ///   - answer: called once, with the engine's answer.
  func request(
    _ verb: Request.Verb, _ worker: WorkerID, asked: Instant? = nil,
    occasion: Request.Occasion? = nil, lasting: Duration? = nil,
    then answer: @escaping (Answer) -> Void
  ) {
    let id = replies.await(answer)
    send(
      .request(
        Request(
          id: id, verb: verb, worker: worker, asked: asked, occasion: occasion, lasting: lasting)))
  }

  /// Answers that only wait for the disk are given now.
  func deliverAnswers() { replies.deliverAll() }

  /// The configuration was read again. Nothing happens before the next event.
  func setPolicy(_ policy: LifecyclePolicy) { engine.setPolicy(policy) }
}

extension Directive {
  fileprivate var isResume: Bool { if case .resume = self { true } else { false } }
}
