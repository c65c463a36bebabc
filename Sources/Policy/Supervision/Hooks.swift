/// `on:`: commands that the daemon runs when something happens.
public struct Hooks: Hashable, Sendable {
  /// What runs a command: the kinds of `dormouse events`, the states that a worker reaches, and
  /// groups of these.
  public enum Event: String, Hashable, Sendable, CaseIterable {
    /// The kinds of `dormouse events`.
    case state, failed, refused, memory, pressure, jetsam, policy, shadow, daemon
    /// A worker has reached this state.
    case launching, foreground, background, suspended, hibernated, terminated
    /// A worker runs again after it was suspended or hibernated.
    case woken
    /// A worker ended by itself with a failure, or because it missed a deadline.
    case crashed
    /// A worker was terminated for lack of memory.
    case terminatedForMemory = "terminated_for_memory"
    /// A worker will be terminated for lack of memory if it isn't protected in time (`terminate:
    /// ask`).
    case willTerminate = "will_terminate"
    /// A worker's footprint was over a limit in `limits.footprint`.
    case overLimit = "over_limit"
    /// A worker's footprint was larger at each suspension.
    case leakSuspected = "leak_suspected"
    /// Any of these.
    case everything = "any"

    /// Whether it doesn't concern one worker, and so can't be configured for a worker.
    public var isOfMachine: Bool { self == .pressure || self == .jetsam || self == .daemon }
  }

  /// The commands for each event. A command is a program and its arguments, and never empty.
  public var commands: [Event: [[String]]] = [:]
  /// The time after which a command is ended.
  public var timeout = Duration.seconds(10)
  /// The working directory of the commands.
  public var directory: String

  public init(directory: String = ".") { self.directory = directory }

  public var isEmpty: Bool { commands.isEmpty }
}
