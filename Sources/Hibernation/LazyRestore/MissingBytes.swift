import Synchronization

/// The number of bytes of a running worker that are still in its image only.
public final class MissingBytes: Sendable {
  private let count: Atomic<UInt64>
  /// True if the worker was trimmed: the bytes stay in the image until the worker needs them. False
  /// if it was resumed: they return to memory without any action of the worker, so they count as
  /// its memory already.
  public let isTrimmed: Bool
  /// The directory in which the image is; `nil` if that isn't known. A volume may be mounted over
  /// it while the image is in use.
  public let directory: ImageDirectory?

  /// - Parameter count: in bytes.
  public init(_ count: UInt64, isTrimmed: Bool = false, in directory: ImageDirectory? = nil) {
    self.count = Atomic(count)
    self.isTrimmed = isTrimmed
    self.directory = directory
  }

  /// The number of missing bytes, or more. It is exact only when the fill has ended.
  public var bytes: UInt64 { count.load(ordering: .relaxed) }

  /// Corrects the number.
  func set(_ bytes: UInt64) { count.store(bytes, ordering: .relaxed) }

  /// Subtracts a chunk that is in place.
  func didFill(_ length: Int) {
    let length = UInt64(length)
    _ = count.subtract(min(length, bytes), ordering: .relaxed)
  }

  func end() { count.store(0, ordering: .relaxed) }
}
