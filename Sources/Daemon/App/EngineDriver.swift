import Lifecycle
import Policy

/// Receives every event that the engine has handled, before the event's directives are executed.
/// Only resumes are executed earlier.
protocol EngineObserver: AnyObject {
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant)
  /// The engine has the policy of a configuration that was read again.
  func didSetPolicy(_ policy: LifecyclePolicy, at now: Instant)
}

extension EngineObserver {
  func didSetPolicy(_ policy: LifecyclePolicy, at now: Instant) {}
}

/// The only owner of the engine. It gives the engine events, one after the other, each with the
/// time. It passes the engine's directives on, and its answers to the clients that asked. It knows
/// no worker and no file. Belongs to the loop's thread.
final class EngineDriver {
  private var engine: Engine
  private let clock: any Timers
  /// The events that wait, and how many of them have been handled.
  private var waiting: [Event] = []
  private var handledCount = 0
  private var isHandling = false
  let replies: RequestReplies
  private var carryOut: (Directive) -> Void = { _ in }
  private var whenQuiet: () -> Void = {}
  private var observers: [any EngineObserver] = []
  /// How long the machine had slept in total when the last event was handled.
  private var slept: Duration
  /// A shorter sleep of the machine isn't reported: the two clocks aren't read at the same instant,
  /// so their difference varies.
  private static let minSleep = Duration.milliseconds(100)

  /// - Parameter replies: passes answers to the clients that asked.
  init(_ engine: Engine, clock: any Timers, replies: RequestReplies) {
    self.engine = engine
    self.clock = clock
    self.replies = replies
    slept = clock.slept
  }

  /// Connects the engine to what surrounds it. Called before the first event.
  ///
  /// - Parameters:
  ///   - observers: get every event.
  ///   - carryOut: carries out a directive. Each failure comes back as an event.
  ///   - whenQuiet: called when every event so far has been handled. If it sends events, they are
  ///     handled, and it is called again.
  func connect(
    _ observers: [any EngineObserver], carryOut: @escaping (Directive) -> Void = { _ in },
    whenQuiet: @escaping () -> Void = {}
  ) {
    self.observers = observers
    self.carryOut = carryOut
    self.whenQuiet = whenQuiet
  }

  /// The engine as of now. It changes with every event.
  var state: Engine { _read { yield engine } }

  /// No event waits to be handled. If false, `whenQuiet` will be called.
  private(set) var isQuiet = true

  /// When the engine's next deadline is reached; nil: there is none.
  var nextDeadline: Instant? { engine.nextDeadline }

  /// Sends `.deadline` if the next deadline is reached.
  func passDeadlines() {
    if let deadline = engine.nextDeadline, deadline <= clock.now { send(.deadline) }
  }

  /// Gives the engine an event, and executes its directives before this returns. An event that is
  /// sent while the directives of another event are executed waits until that has ended. The first
  /// call handles all events, so nothing recurses, however many there are.
  func send(_ event: Event) {
    waiting.append(event)
    isQuiet = false
    guard !isHandling else { return }
    isHandling = true
    defer { isHandling = false }
    repeat {
      while handledCount < waiting.count {
        let next = waiting[handledCount]
        handledCount += 1
        reportSleep()
        handle(next)
      }
      waiting.removeAll(keepingCapacity: true)
      handledCount = 0
      isQuiet = true
      whenQuiet()
    } while !waiting.isEmpty
  }

  private func reportSleep() {
    let time = clock.slept - slept
    guard time >= Self.minSleep else { return }
    slept += time
    handle(.machineSlept(time))
  }

  private func handle(_ event: Event) {
    let now = clock.now
    let directives = clock.step("the engine") { engine.handle(event, at: now) }
    // A client waits for a resume. The engine doesn't change while directives are executed.
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
      clock.step("\(directive)") {
        if case .answer(let request, let answer) = directive {
          replies.deliver(answer, to: request)
        } else {
          carryOut(directive)
        }
      }
      // If two hundred workers reach a deadline in the same turn, the check for blocked turns
      // (`TurnCheck`) times each directive separately.
      clock.checkpoint()
    }
  }

  /// Gives the engine the policy of a configuration that was read again. Nothing happens before the
  /// next event.
  func setPolicy(_ policy: LifecyclePolicy) {
    engine.setPolicy(policy)
    for observer in observers { observer.didSetPolicy(policy, at: clock.now) }
  }
}

extension Directive {
  fileprivate var isResume: Bool { if case .resume = self { true } else { false } }
}
