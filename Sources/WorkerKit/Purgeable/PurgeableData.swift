import WorkerProtocol

/// Bytes that can be made again, in memory that the daemon can purge.
///
/// When the machine runs short, the daemon purges the bytes without asking, also while this worker
/// is suspended or hibernated. When you access the content again, it is whole or discarded, never
/// in part.
///
/// ```swift
/// let bitmap = PurgeableData(decoded)  // has one access
/// show(bitmap)
/// bitmap.endContentAccess()  // may be purged from here on
/// let sum = bitmap.withContent { bytes in checksum(bytes) }
/// if sum == nil { decodeAgain() }
/// ```
///
/// New content has one access, as with Foundation's `NSPurgeableData`. Call `endContentAccess` once
/// when you have used the content for the first time, or pass `isHeld: false`. After that, use
/// `withContent`.
///
/// All contents are in one file of shared memory (`memfd_create(2)`), in whole pages: it is meant
/// for contents of many kilobytes. Without a daemon, or if the process can't have such a file,
/// contents are still discarded by memory warnings. A forked process must not access the contents
/// of its parent.
///
/// Accesses are thread-safe. Beginning and ending one each cost an atomic change of a word. If
/// several threads write to the *bytes*, your code must guard them.
public final class PurgeableData: DiscardableContent {
  /// The length of the content in bytes.
  public let count: Int
  private let heap: PurgeableHeap?
  /// The content's location; `nil` if there was no room for it, and so it was discarded from the
  /// beginning.
  private let allocation: PurgeableHeap.Allocation?

  /// Creates content that `initialize` fills. If there is no room for it, it is discarded from the
  /// beginning.
  ///
  /// - Parameters:
  ///   - count: The length of the content in bytes, 0 or more.
  ///   - isHeld: Whether the content has one access, which the caller ends by `endContentAccess`.
  ///   - worker: The worker whose daemon may purge the content.
  ///   - initialize: Fills the bytes, which are all zero. It doesn't run if there is no room.
  /// - Throws: the error of `initialize`.
  public init<Failure: Error>(
    count: Int, isHeld: Bool = true, worker: Worker = .shared,
    initialize: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    precondition(count >= 0, "a negative count")
    self.count = count
    heap = worker.purgeable.make(worker.connection)
    allocation = heap?.allocate(bytes: count)
    guard let heap, let allocation else { return }
    try initialize(heap.bytes(allocation, count: count))
    if !isHeld { endContentAccess() }
  }

  /// Creates content with a copy of the bytes.
  public convenience init(
    _ bytes: UnsafeRawBufferPointer, isHeld: Bool = true, worker: Worker = .shared
  ) {
    self.init(count: bytes.count, isHeld: isHeld, worker: worker) { $0.copyMemory(from: bytes) }
  }

  /// Creates content with a copy of the bytes.
  public convenience init(
    _ bytes: some Collection<UInt8>, isHeld: Bool = true, worker: Worker = .shared
  ) {
    self.init(count: bytes.count, isHeld: isHeld, worker: worker) { $0.copyBytes(from: bytes) }
  }

  deinit {
    if let allocation { heap?.release(allocation) }
  }

  public func beginContentAccess() -> Bool {
    guard let heap, let allocation else { return false }
    if heap.word(allocation).retain(generation: allocation.generation) { return true }
    heap.collectIfLost(allocation)
    return false
  }

  public func endContentAccess() {
    guard let heap, let allocation else { return }
    let released = heap.word(allocation).release(generation: allocation.generation)
    precondition(released != nil, "endContentAccess() without beginContentAccess()")
  }

  public func discardContentIfPossible() {
    if let allocation { heap?.discard(allocation) }
  }

  public var isContentDiscarded: Bool {
    guard let heap, let allocation else { return true }
    let state = heap.word(allocation).state
    return !state.isUsed || state.isPurging || state.generation != allocation.generation
  }

  /// Runs `body` with the bytes, which stay meanwhile, and returns its result. If the content was
  /// discarded, the result is `nil` and `body` doesn't run: make the content again. The pointer is
  /// valid only while `body` runs.
  public func withContent<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    try withMutableContent { bytes throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
  }

  /// Runs `body` with bytes that can be written to, as `withContent` does. If some code writes
  /// while other code reads, your code must guard the bytes.
  public func withMutableContent<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let heap, let allocation, beginContentAccess() else { return nil }
    defer { endContentAccess() }
    return try body(heap.bytes(allocation, count: count))
  }
}
