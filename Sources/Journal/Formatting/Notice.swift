import Lifecycle
import Policy

/// One event for people, as `dormouse events` shows it.
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
    /// Workers were terminated for lack of memory.
    case jetsam
    /// The configuration has changed.
    case policy
    /// Shadow mode: the policy would have done something.
    case shadow
    /// The daemon has started.
    case daemon
  }

  /// The occasion on which memory was requested or freed.
  public enum Occasion: String, Hashable, Sendable, CaseIterable {
    case warning, background, purge, task
    /// The footprint was over one of the worker's `limits.footprint`.
    case limit
    /// The footprint was larger at each suspension.
    case leakSuspected = "leak_suspected"
    /// The worker will be terminated for lack of memory (`terminate: ask`), or it won't be any
    /// more.
    case notice, withdrawn
    /// Memory of a running worker was moved out of RAM, or back.
    case trim, fill
  }

  public var at: Instant
  public var kind: Kind
  /// The worker. nil: the notice concerns the machine.
  public var worker: WorkerID?
  /// The states before and after, for `state`.
  public var from: WorkerState?
  public var to: WorkerState?
  /// The new level, for `pressure`.
  public var level: PressureLevel?
  /// The cause, for `state`.
  public var cause: Cause?
  /// The occasion, for `memory`. With `freed` the notice is the outcome; without it, the request.
  public var occasion: Occasion?
  /// One sentence, without the worker's name.
  public var text: String
  /// The duration of the change.
  public var took: Duration?
  /// The memory that was freed.
  public var freed: ByteCount?
}

extension Notice {
  public init(daemonStarted version: String, policy: String, at now: Instant) {
    self.init(at: now, kind: .daemon, text: "daemon started: version \(version), policy \(policy)")
  }

  public init(gapAt now: Instant) {
    self.init(at: now, kind: .daemon, text: "gap in the journal: earlier events are missing")
  }
}
