import JSONLines
import Lifecycle
import Policy

/// Checks whether an engine that gets the same events gives the same directives again.
public struct DeterminismCheck: Sendable {
  public struct Difference: Sendable {
    public var at: Instant
    public var wall: WallTime
    public var event: Event
    /// The first directive that differs, as it was written. nil: there was none.
    public var recorded: JSON?
    /// The first directive that differs, as the engine gives it now. nil: there is none.
    public var replayed: JSON?
  }

  /// The number of events that were compared.
  public private(set) var events = 0
  /// The number of directives that the engine gave.
  public private(set) var directives = 0
  public private(set) var segments = 0
  public private(set) var runs = 0
  /// The time of the first step.
  public private(set) var from: WallTime?
  /// The time of the last step.
  public private(set) var to: WallTime?
  /// The first events whose directives differ, at most `maxDifferences`.
  public private(set) var differences: [Difference] = []
  public private(set) var differingEvents = 0

  public static let maxDifferences = 10

  public init() {}

  /// Compares a step's directives with the recorded ones.
  public mutating func visit(_ step: JournalStep) {
    if from == nil { from = step.wall }
    to = step.wall
    switch step.kind {
    case .began(_, let beginning):
      if beginning != .afterGap { runs += 1 }
      segments += 1
    case .continued: segments += 1
    case .policy: break
    case .event(let event): compare(event, step)
    }
  }

  private mutating func compare(_ event: Event, _ step: JournalStep) {
    events += 1
    directives += step.directives.count
    if step.directives.isEmpty, step.recorded.isEmpty { return }
    // A directive that can't be written is missing here, so the comparison fails.
    let replayed = step.directives.compactMap { try? JSON(directive: $0) }
    let (now, then) = (replayed.map(\.withoutSentences), step.recorded.map(\.withoutSentences))
    guard now != then else { return }
    differingEvents += 1
    guard differences.count < Self.maxDifferences else { return }
    let count = max(replayed.count, step.recorded.count)
    let firstDifference = (0..<count).first { index in
      index >= now.count || index >= then.count || now[index] != then[index]
    }
    guard let firstDifference else { return }
    differences.append(
      Difference(
        at: step.at, wall: step.wall, event: event,
        recorded: firstDifference < step.recorded.count ? step.recorded[firstDifference] : nil,
        replayed: firstDifference < replayed.count ? replayed[firstDifference] : nil))
  }
}

// Recorded decisions are compared with new ones without their sentences. Sentences may change in
// any version of Dormouse; decisions may not.

extension JSON {
  /// This value without reasons in words: `why`, `text`, and the value of a cause beside its case.
  var withoutSentences: JSON {
    switch self {
    case .object(let members):
      .object(
        members.compactMap { member in
          if member.value.text != nil, ["why", "text"].contains(member.name) { return nil }
          return Member(
            member.name, member.isCauseWithSentence ? .null : member.value.withoutSentences)
        })
    case .array(let elements): .array(elements.map(\.withoutSentences))
    default: self
    }
  }
}

extension JSON.Member {
  /// True for a case of `Cause` whose value is a sentence, or is missing in journals of earlier
  /// versions.
  fileprivate var isCauseWithSentence: Bool {
    switch name {
    case "graceOver": true
    case "watchdog", "failed": value["_0"]?.text != nil
    default: false
    }
  }
}
