import Policy

/// The costs on the simulated machine. The defaults are what `dormouse bench` and Benchmarks/resume.py
/// measured on two cores of an AMD EPYC with python workers (Benchmarks/results/2026-11-21-matrix.md,
/// 2026-11-21-resume.md).
public struct MachineModel: Sendable, Hashable {
  public var memory: ByteCount
  /// From the arrival of a request until a suspended worker runs, with the time to find which worker is
  /// needed.
  public var suspendedWake = Duration.microseconds(1_300)
  public var suspend = Duration.milliseconds(1)
  /// From the directive until a hibernated worker runs: 12.4 ms at 16.6 MB, 110 ms at 201 MB.
  public var resumeBase = Duration.microseconds(3_600)
  public var resumePerMegabyte = Duration.microseconds(530)
  public var hibernateBase = Duration.milliseconds(2)
  /// Bytes of the worker's memory a second.
  public var hibernateRate = ByteCount.megabytes(533)
  /// An image's size as a share of the footprint.
  public var imageShare = 0.22
  /// What a hibernated worker keeps: its stacks in the kernel, its page tables, 8 KB of pages.
  public var hibernatedRest = ByteCount.kilobytes(64)
  /// From SIGTERM until a worker has ended.
  public var exit = Duration.milliseconds(50)
  /// With less free memory the kernel reclaims while a use waits; 0–1 of the memory.
  public var reserve = 0.02
  /// How much longer a use takes then.
  public var stall = Duration.milliseconds(100)
  /// The share of workers that can be asked to free memory, and the share of their memory that they
  /// free; 0–1.
  public var cooperating = 0.5
  public var shedShare = 0.15
  /// The share of its footprint that a worker has when it has just been launched; it grows to the whole
  /// within `warmUp` uses.
  public var launchedShare = 0.6
  public var warmUp = 10

  public init(memory: ByteCount) { self.memory = memory }

  public func expectedResume(_ footprint: ByteCount) -> Duration { resume(footprint.bytes) }

  func resume(_ footprint: Int64) -> Duration {
    resumeBase + resumePerMegabyte * (Double(footprint) / 1_048_576)
  }

  func hibernate(_ footprint: Int64) -> Duration {
    hibernateBase + .seconds(1) * (Double(footprint) / Double(max(1, hibernateRate.bytes)))
  }
}
