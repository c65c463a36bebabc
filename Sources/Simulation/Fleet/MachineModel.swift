import Lifecycle
import Policy

/// The costs of operations on the simulated machine. The defaults were measured by `dormouse bench`
/// and Benchmarks/resume.py on two cores of an AMD EPYC with python workers
/// (Benchmarks/results/2026-11-21-matrix.md, 2026-11-21-resume.md).
public struct MachineModel: Sendable, Hashable {
  public var memory: ByteCount
  /// The time from the arrival of a request until a suspended worker runs, including the time to
  /// find out which worker is needed.
  public var suspendedWake = Duration.microseconds(1_300)
  /// The time to suspend a worker.
  public var suspend = Duration.milliseconds(1)
  /// The time from the directive until a hibernated worker runs, without the time for its memory.
  /// Measured for both: 12.4 ms at 16.6 MB, 110 ms at 201 MB.
  public var resumeBase = Duration.microseconds(3_600)
  /// The additional time to resume a hibernated worker, for each MB of its footprint.
  public var resumePerMegabyte = Duration.microseconds(530)
  /// The time to hibernate a worker, without the time for its memory.
  public var hibernateBase = Duration.milliseconds(2)
  /// The bytes of the worker's memory that are hibernated in a second.
  public var hibernateRate = ByteCount.megabytes(533)
  /// The size of an image as a share of the footprint.
  public var imageShare = 0.22
  /// The memory that a hibernated worker keeps: its stacks in the kernel, its page tables, 8 KB of
  /// pages.
  public var hibernatedFootprint = ByteCount.kilobytes(64)
  /// The time from SIGTERM until a worker has ended.
  public var exit = Duration.milliseconds(50)
  /// The share of the memory (0–1) below which free memory makes the kernel reclaim while a use
  /// waits.
  public var reserve = 0.02
  /// The additional time that a use takes then.
  public var stall = Duration.milliseconds(100)
  /// The share of workers that can be asked to free memory, 0–1.
  public var cooperating = 0.5
  /// The share of their memory that they free, 0–1.
  public var shedShare = 0.15
  /// The share of its footprint that a worker has right after its launch. It grows to the whole
  /// within `warmUp` uses.
  public var launchedShare = 0.6
  /// The number of uses after which a worker has its whole footprint.
  public var warmUp = 10

  /// What trims do. With the defaults 17 % of a worker's memory is in RAM after a trim and a use:
  /// 83 of 483 MB of nine programs in use for ten minutes
  /// (Benchmarks/results/2026-11-29-trim.md).
  public var trim = TrimShares(left: 0.08, returned: 0.1)
  /// What trims of single workers do, where that was measured.
  public var measuredTrims: [WorkerID: TrimShares] = [:]
  /// The workers that work by their own timers: a policy that trims them doesn't suspend them.
  public var staysAwake: Set<WorkerID> = []
  /// The additional time of a use for each MB of trimmed memory that it brings back. By swap 0.4 to
  /// 1.6 ms were measured, by userfaultfd 1.4 ms.
  public var trimReturnPerMegabyte = Duration.milliseconds(1)

  /// What a trim does, as shares from 0 to 1.
  public struct TrimShares: Sendable, Hashable {
    /// The share of the worker's memory that is in RAM right after the trim. 1: it can't be
    /// trimmed.
    public var left: Double
    /// The share of the trimmed memory that comes back with the next use.
    public var returned: Double

    public init(left: Double, returned: Double) {
      (self.left, self.returned) = (left, returned)
    }
  }

  public init(memory: ByteCount) { self.memory = memory }

  public func resume(_ footprint: Int64) -> Duration {
    resumeBase + resumePerMegabyte * (Double(footprint) / 1_048_576)
  }

  func hibernate(_ footprint: Int64) -> Duration {
    hibernateBase + .seconds(1) * (Double(footprint) / Double(max(1, hibernateRate.bytes)))
  }
}
