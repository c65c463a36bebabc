import JSONLines
import Lifecycle
import Policy

/// A segment of a journal, and a function that reads it from its storage.
public struct JournalSegment: Sendable {
  public var name: String
  public var read: @Sendable () throws -> [UInt8]

  public init(name: String, read: @escaping @Sendable () throws -> [UInt8]) {
    self.name = name
    self.read = read
  }

  /// Reads the segment up to its first damage. Returns the problem that has ended the reading
  /// early. nil: there was none.
  public func forEachRecord(
    _ body: (JournalRecord, Instant) throws -> Void
  ) rethrows -> JournalProblem? {
    let bytes: [UInt8]
    do { bytes = try read() } catch { return .unreadable(segment: name, "\(error)") }
    var reader = SegmentReader(bytes, name: name)
    while let item = reader.next() {
      switch item {
      case .damage(let damage): return .damage(damage)
      case .record(let record, let at): try body(record, at)
      }
    }
    return nil
  }
}

/// A step of a journal's history, after which an engine is in a new state.
public struct JournalStep: Sendable {
  public enum Kind: Sendable {
    /// A segment begins with another engine than the one before it.
    case began(SegmentHeader, Beginning)
    /// A segment begins, and the engine continues.
    case continued(SegmentHeader)
    case event(Event)
    case policy(LifecyclePolicy)
  }

  public enum Beginning: Hashable, Sendable {
    /// The first segment of the journal.
    case first
    /// The first segment of a daemon.
    case newRun
    /// The segment before it is missing or damaged.
    case afterGap
  }

  public var kind: Kind
  public var at: Instant
  public var wall: WallTime
  /// The directives that the engine gives now.
  public var directives: [Directive] = []
  /// The directives that were written then, as `JSON(directive:)` writes them.
  public var recorded: [JSON] = []
}

/// A problem of a journal. None of them ends the reading.
public enum JournalProblem: Hashable, Sendable, CustomStringConvertible {
  case unreadable(segment: String, String)
  case damage(JournalDamage)
  /// The engine that results from the records differs from the one with which the next segment
  /// begins.
  case checkpointDiffers(segment: String, at: WallTime)

  public var description: String {
    switch self {
    case .unreadable(let segment, let reason): "\(segment): can't be read: \(reason)"
    case .damage(let damage): damage.description
    case .checkpointDiffers(let segment, let time):
      "\(segment): its engine at \(time.text) differs from the one that "
        + "the records before it lead to"
    }
  }

  /// True for a record that was being written when the daemon died. It is no defect of the journal.
  public var isHarmless: Bool {
    if case .damage(let damage) = self { damage.isTornTail } else { false }
  }
}

/// Applies the records of a journal to an engine again.
public struct JournalPlayer: Sendable {
  /// The engine after the last record that was played.
  public private(set) var engine = Engine(policy: LifecyclePolicy())
  /// The problems that were found until now.
  public private(set) var problems: [JournalProblem] = []
  /// The difference between the wall clock and the engine's clock, in nanoseconds.
  private var wallOffset: Int64 = 0
  private var last: (run: String, segment: Int64, isWhole: Bool)?
  private var header: SegmentHeader?

  public init() {}

  /// Plays all segments in their order. `visit` is called with each step and the engine after it.
  public mutating func play(
    _ segments: [JournalSegment], visit: (JournalStep, Engine) throws -> Void
  ) rethrows {
    for segment in segments { try play(segment, visit: visit) }
  }

  private mutating func play(
    _ segment: JournalSegment, visit: (JournalStep, Engine) throws -> Void
  ) rethrows {
    header = nil
    let problem = try segment.forEachRecord { record, at in
      if let step = play(record, at: at, in: segment.name) { try visit(step, engine) }
    }
    guard let problem else { return }
    problems.append(problem)
    last?.isWhole = false
  }

  private mutating func play(
    _ record: JournalRecord, at: Instant, in segment: String
  ) -> JournalStep? {
    switch record {
    case .header(let header):
      self.header = header
      wallOffset = header.wall.nanoseconds &- header.at.nanoseconds
      return nil
    case .checkpoint(let checkpoint): return begin(checkpoint, at: at, in: segment)
    case .clock(let wall):
      wallOffset = wall.nanoseconds &- at.nanoseconds
      return nil
    case .policy(let policy):
      engine.setPolicy(policy)
      return JournalStep(kind: .policy(policy), at: at, wall: wall(at))
    case .event(let event, let recorded):
      let directives = engine.handle(event, at: at)
      return JournalStep(
        kind: .event(event), at: at, wall: wall(at), directives: directives, recorded: recorded)
    }
  }

  private mutating func begin(
    _ checkpoint: Engine, at: Instant, in segment: String
  ) -> JournalStep? {
    guard let header else { return nil }
    let before = last
    last = (header.run, header.segment, true)
    let step = JournalStep(kind: .continued(header), at: at, wall: wall(at))
    if let before, before.isWhole, before.run == header.run, before.segment + 1 == header.segment {
      if !checkpoint.isSame(as: engine) {
        problems.append(.checkpointDiffers(segment: segment, at: wall(at)))
        engine = checkpoint
      }
      return step
    }
    engine = checkpoint
    let beginning: JournalStep.Beginning =
      if before == nil, header.segment > 0 { .first } else {
        before?.run == header.run ? .afterGap : .newRun
      }
    return JournalStep(kind: .began(header, beginning), at: at, wall: wall(at))
  }

  private func wall(_ at: Instant) -> WallTime {
    WallTime(nanoseconds: at.nanoseconds &+ wallOffset)
  }
}

extension Engine {
  /// Compares everything except sentences.
  public func isSame(as other: Engine) -> Bool {
    guard let ours = try? JSON(encoding: self), let theirs = try? JSON(encoding: other) else {
      return false
    }
    return ours.withoutSentences == theirs.withoutSentences
  }
}
