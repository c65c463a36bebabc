import Lifecycle
import Policy

/// One event for people: what `dormouse events` shows.
public struct Notice: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// A worker changed its state.
    case state
    /// An operation failed.
    case failed
    /// A request was refused.
    case refused
    /// A worker was warned, or freed memory.
    case memory
    case pressure
    /// Workers were terminated for memory.
    case jetsam
    /// The configuration has changed.
    case policy
    /// Shadow mode: what would have been done.
    case shadow
    /// The daemon has started.
    case daemon
  }

  /// Why memory was requested, or taken.
  public enum Occasion: String, Hashable, Sendable, CaseIterable {
    case warning, background, purge, task
    /// The footprint was over one of the worker's `limits.footprint`.
    case limit
    /// Its footprint was larger at each suspension.
    case leakSuspected = "leak_suspected"
    /// It will be terminated for lack of memory (`terminate: ask`); and it won't.
    case notice, withdrawn
  }

  public var at: Instant
  public var kind: Kind
  public var worker: WorkerID?
  public var from: WorkerState?
  public var to: WorkerState?
  public var level: PressureLevel?
  /// Of `state`: why.
  public var cause: Cause?
  /// Of `memory`. With `freed` it is the outcome, without it the request.
  public var occasion: Occasion?
  /// One sentence, without the worker's name.
  public var text: String
  /// The time that it took, and the memory that it freed.
  public var took: Duration?
  public var freed: ByteCount?

  init(
    _ kind: Kind, worker: WorkerID?, text: String, at: Instant, occasion: Occasion? = nil
  ) {
    self.occasion = occasion
    self.kind = kind
    self.worker = worker
    self.text = text
    self.at = at
  }
}

extension Notice {
  public init(daemonStarted header: SegmentHeader, at now: Instant) {
    self.init(
      .daemon, worker: nil,
      text: "daemon started: version \(header.version), policy \(header.policy.name)",
      at: now)
  }

  public init(gapAt now: Instant) {
    self.init(
      .daemon, worker: nil, text: "gap in the journal: earlier events are missing",
      at: now)
  }
}
