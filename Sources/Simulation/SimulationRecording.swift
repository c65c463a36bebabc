import Lifecycle
import Policy

/// Records the engine's whole input, and plays it to another engine. After any prefix of the input
/// (one is chosen for each seed) the other engine must be in the same state. Otherwise the engine
/// would remember something that wasn't in its input.
struct SimulationRecording {
  enum Step {
    case event(Event, Instant)
    case policy(LifecyclePolicy)
  }

  private let policy: LifecyclePolicy
  private var steps: [Step] = []
  /// The number of steps after which the engine was copied.
  private let mark: Int
  private var marked: Engine?

  init(policy: LifecyclePolicy, using random: inout SplitMix64) {
    self.policy = policy
    mark = 1 + Int(random.next() % 120)
  }

  mutating func add(_ step: Step, _ engine: Engine) {
    guard marked == nil else { return }
    steps.append(step)
    if steps.count == mark { marked = engine }
  }

  /// Returns a complaint, or `nil`.
  func check(_ engine: Engine) -> String? {
    var other = Engine(policy: policy)
    for step in steps.prefix(mark) {
      switch step {
      case .event(let event, let time): _ = other.handle(event, at: time)
      case .policy(let policy): other.setPolicy(policy)
      }
    }
    let expected = marked ?? engine
    let isSame =
      other == expected && other.nextDeadline == expected.nextDeadline
      && other.available == expected.available
      && other.terminationOrder() == expected.terminationOrder()
    return isSame ? nil : "an engine that replays the first \(min(mark, steps.count)) steps differs"
  }
}
