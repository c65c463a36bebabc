import Policy

/// A worker as the engine sees it at one moment, for `ps` and `status`.
public struct WorkerSnapshot: Hashable, Sendable {
  public var worker: WorkerID
  public var state: WorkerState
  /// The number that orders workers for termination, 0–100. The lowest is terminated first.
  public var band: Int
  public var profile: WorkerProfile
  /// The last measured footprint; zero before the first measurement.
  public var footprint: ByteCount
  /// The largest footprint that was measured in this run.
  public var peakFootprint: ByteCount
  /// When the worker entered its state, or returned to it because a transition failed.
  public var since: Instant
  /// When the worker entered its state. A transition that has failed doesn't count.
  public var stateSince: Instant
  /// When the worker was last used. For a foreground worker that is the time of the snapshot.
  public var lastUsed: Instant
  /// The reason for the last transition.
  public var cause: Cause
  /// Why the worker isn't hibernated, and what would have to change. `nil`: it is hibernated.
  public var hibernationVerdict: Verdict?
  /// The size of its image on disk. `nil`: it isn't hibernated.
  public var imageSize: ByteCount?
  /// The learned time from a launch to readiness. `nil`: not measured yet.
  public var launchCost: Duration?
  /// The time of the last resume from hibernation. `nil`: none was measured.
  public var resumeCost: Duration?
  public var lastExit: ExitStatus?
  /// The names of its open background tasks.
  public var tasks: [String]
  /// What the last shed request achieved. A missing answer is recorded and has no other effect.
  public var lastShed: ShedRecord?
  /// The last deadline that the worker missed.
  public var lastMiss: Miss?
  /// Its early wakes. `nil`: the worker was never needed again too soon after it was put to sleep.
  public var earlyWake: EarlyWake?
  /// The purgeable memory that the worker offers.
  public var purgeable: ByteCount
  /// Shadow mode applies: the policy's decisions for this worker are logged, not applied.
  public var isShadow: Bool
  /// A request (`shadow` or `enforce`) set the mode. It overrides the policies.
  public var isModeByRequest: Bool
  /// What protects the worker from termination for lack of memory. `nil`: nothing.
  public var protection: Protection?
  /// When the protection by request ends. `nil`: there is none, or it has no time limit.
  public var protectedUntil: Instant?
  /// When the worker fell asleep. `nil`: it doesn't sleep, or an earlier daemon put it to sleep.
  public var asleepSince: Instant?
  /// The last resume in this run. `nil`: there was none.
  public var lastWake: LastWake?
  /// The announced termination for lack of memory (`terminate: ask`). `nil`: none is announced.
  public var notice: TerminationNotice?
  /// Its restarts for its footprint. `nil`: there were none.
  public var footprintRestarts: FootprintRestarts?
  /// The suspicion that the worker leaks memory. `nil`: there is no sign of it.
  public var leak: LeakSuspicion?
  /// What would have been done with the worker outside shadow mode. `nil`: nothing.
  public var shadow: ShadowSummary?
  /// Its trims. `nil`: it wasn't trimmed, has all memory in RAM, and its policy doesn't trim it.
  public var trim: TrimState?
}

/// The last time that a worker was resumed in this run.
public struct LastWake: Codable, Hashable, Sendable {
  public var at: Instant
  public var cause: Cause
}

/// A deadline that a worker missed.
public struct Miss: Codable, Hashable, Sendable {
  public var at: Instant
  /// A clause such as `it did not answer …`.
  public var text: String
}

extension WorkerSnapshot {
  /// Whether the worker is being suspended for idleness, under `foreground.mode: activity`.
  public var isForIdleness: Bool {
    guard profile.policy.foreground.mode == .activity else { return false }
    switch cause {
    case .graceOver, .quietAgain: return true
    default: return false
    }
  }

  /// Whether the worker stays awake instead, if it works by its own timers: its policy trims it.
  public var mayStayAwake: Bool { isForIdleness && trim?.isByPolicy == true }
}
