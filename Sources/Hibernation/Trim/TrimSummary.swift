/// The parameters of a trim. `HibernationService` and `Hibernator` get the same request.
public struct TrimRequest: Sendable {
  /// The mechanisms among which the trim may choose.
  public enum Mechanism: Sendable {
    /// Swap where there is some; otherwise userfaultfd.
    case auto
    /// Only userfaultfd: the memory is in an image.
    case userfaultfd
    /// Only the kernel's swap.
    case swap
  }

  /// The worker, and how its image is written if the trim uses userfaultfd. Its `restore` has no
  /// effect.
  public var image: HibernationRequest
  /// The path of the file that a later daemon needs to repair the worker if this one dies in the
  /// middle of a trim by a borrowed thread.
  public var record: String
  public var mechanism: Mechanism
  /// Why the policy permits no image with `auto`; nil: it does.
  public var imageObstacle: String?
  /// A trim by userfaultfd is given up if the worker has stood still for this time, and its image
  /// isn't complete. nil: it never is.
  public var maxStandstill: Duration?

  public init(
    _ image: HibernationRequest, record: String, mechanism: Mechanism = .auto,
    imageObstacle: String? = nil, maxStandstill: Duration? = nil
  ) {
    self.image = image
    // A thread waits for each chunk.
    self.image.compression = .lz4
    self.record = record
    self.mechanism = mechanism
    self.imageObstacle = imageObstacle
    self.maxStandstill = maxStandstill
  }

  public var target: HibernationTarget { image.target }
}

/// What a trim or a fill moved, in bytes.
public struct TrimSummary: Sendable {
  /// How the memory was moved.
  public enum Mechanism: String, Sendable, CaseIterable {
    /// The memory is in an image. The worker's threads wait for a page that they touch until this
    /// process has put it in place.
    case userfaultfd
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
  /// The memory that is in swap or in the image afterwards.
  public var swapped: Int64
  /// The part of `swapped` that is in the image. `nil`: there is no image.
  public var inImage: Int64?
  /// The memory that is in the image only, at any time from now on. `nil`: there is no image.
  public var missing: MissingBytes?
  /// The memory that was written to the image and its base, compressed.
  public var written: UInt64 = 0
  /// The longest time for which the worker stood still. Zero: it wasn't stopped.
  public var stoppedFor: Duration

  public init(
    mechanism: Mechanism?, residentBefore: Int64, residentAfter: Int64, swapped: Int64,
    missing: MissingBytes? = nil, stoppedFor: Duration = .zero
  ) {
    self.mechanism = mechanism
    self.residentBefore = residentBefore
    self.residentAfter = residentAfter
    self.swapped = swapped
    self.missing = missing
    self.inImage = missing.map { Int64(clamping: $0.bytes) }
    self.stoppedFor = stoppedFor
  }
}
