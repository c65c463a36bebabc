/// What a trim or a fill moved, in bytes.
public struct TrimSummary: Hashable, Sendable {
  /// How the memory was moved.
  public enum Mechanism: String, Sendable, CaseIterable {
    /// process_madvise(2) on the running worker; needs CAP_SYS_NICE and permission to trace it.
    case processMadvise
    /// `memory.reclaim` of the worker's own cgroup (v2, Linux 5.19).
    case reclaim
    /// madvise(2), called by a borrowed thread of the worker, which stands still meanwhile.
    case borrowedThread
  }

  /// How the memory was moved out of RAM; `nil` for a fill.
  public var mechanism: Mechanism?
  /// The part of the footprint that was in RAM before.
  public var residentBefore: Int64
  /// The part of the footprint that is in RAM afterwards.
  public var residentAfter: Int64
  /// The memory that is in swap afterwards.
  public var swapped: Int64
  /// The longest time for which the worker stood still. Zero: it wasn't stopped.
  public var stoppedFor: Duration

  public init(
    mechanism: Mechanism?, residentBefore: Int64, residentAfter: Int64, swapped: Int64,
    stoppedFor: Duration = .zero
  ) {
    self.mechanism = mechanism
    self.residentBefore = residentBefore
    self.residentAfter = residentAfter
    self.swapped = swapped
    self.stoppedFor = stoppedFor
  }
}
