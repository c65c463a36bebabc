/// `on:`: commands that the daemon runs when something happens.
public struct Hooks: Hashable, Sendable {
  /// What may happen: the kinds of `dormouse events`, the states that a worker reaches, and groups of these.
  public enum Event: String, Hashable, Sendable, CaseIterable {
    /// The kinds.
    case state, failed, refused, memory, pressure, jetsam, policy, shadow, daemon
    /// A worker has reached this state.
    case launching, foreground, background, suspended, hibernated, terminated
    /// It runs again after it was suspended or hibernated.
    case woken
    /// It ended by itself with a failure, or because it missed a deadline.
    case crashed
    case terminatedForMemory = "terminated_for_memory"
    /// It will be terminated for lack of memory, if it isn't protected in time (`terminate: ask`).
    case willTerminate = "will_terminate"
    /// Its footprint was over one of its `limits.footprint`.
    case overLimit = "over_limit"
    /// Its footprint was larger at each suspension.
    case leakSuspected = "leak_suspected"
    case everything = "any"

    /// It doesn't concern one worker, so it can't be a worker's.
    public var isOfMachine: Bool { self == .pressure || self == .jetsam || self == .daemon }
  }

  /// A command is a program and its arguments; never empty.
  public var commands: [Event: [[String]]] = [:]
  /// After this a command is ended.
  public var timeout = Duration.seconds(10)
  /// Where the commands run.
  public var directory: String

  public init(directory: String = ".") { self.directory = directory }

  public var isEmpty: Bool { commands.isEmpty }
}
