import WorkerProtocol

/// Bytes that can be made again, in memory that the daemon can take by itself: when the machine runs short,
/// without asking, and also while this worker is suspended or hibernated. When you access the content again, it
/// is whole or discarded, never in part.
///
/// ```swift
/// let bitmap = PurgeableData(decoded)  // held
/// show(bitmap)
/// bitmap.endContentAccess()  // from here on it may go
/// let sum = bitmap.withContent { bytes in checksum(bytes) }
/// if sum == nil { decodeAgain() }
/// ```
///
/// The content begins its life with one access, as Foundation's `NSPurgeableData` does: `endContentAccess`
/// once when it has been shown for the first time, or make it with `isHeld: false`. After that, use
/// `withContent`.
///
/// All contents lie in one file of shared memory (`memfd_create(2)`), in whole pages: it is made for contents of
/// many kilobytes. Without a daemon, or where there is no such file, it is emptied by memory warnings all the
/// same. A process that has been forked must not touch the contents of its parent.
///
/// Accesses are thread-safe, and cost one atomic change of a word each way. If several threads write to the
/// *bytes*, your code must guard them.
public final class PurgeableData: DiscardableContent {
  /// Bytes.
  public let count: Int
  private let heap: PurgeableHeap?
  /// `nil`: there was no room for it, so it was discarded from the beginning.
  private let place: PurgeableHeap.Place?

  /// Where there is no room for it, the content is discarded from the beginning.
  ///
  /// - Parameters:
  ///   - count: bytes, 0 or more.
  ///   - isHeld: with one access, which the caller ends.
  ///   - worker: whose daemon may take it.
  ///   - initialize: fills the bytes, which are all zero. It doesn't run where there is no room.
  public init<Failure: Error>(
    count: Int, isHeld: Bool = true, worker: Worker = .shared,
    initialize: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    precondition(count >= 0, "a negative count")
    self.count = count
    heap = worker.purgeable.make(worker.connection)
    place = heap?.allocate(bytes: count)
    guard let heap, let place else { return }
    try initialize(heap.bytes(place, count: count))
    if !isHeld { endContentAccess() }
  }

  /// A copy of the bytes.
  public convenience init(
    _ bytes: UnsafeRawBufferPointer, isHeld: Bool = true, worker: Worker = .shared
  ) {
    self.init(count: bytes.count, isHeld: isHeld, worker: worker) { $0.copyMemory(from: bytes) }
  }

  /// A copy of the bytes.
  public convenience init(
    _ bytes: some Collection<UInt8>, isHeld: Bool = true, worker: Worker = .shared
  ) {
    self.init(count: bytes.count, isHeld: isHeld, worker: worker) { $0.copyBytes(from: bytes) }
  }

  deinit {
    if let place { heap?.release(place) }
  }

  public func beginContentAccess() -> Bool {
    guard let heap, let place else { return false }
    if heap.word(place).hold(generation: place.generation) { return true }
    heap.noticeLoss(place)
    return false
  }

  public func endContentAccess() {
    guard let heap, let place else { return }
    let released = heap.word(place).release(generation: place.generation)
    precondition(released != nil, "endContentAccess() without beginContentAccess()")
  }

  public func discardContentIfPossible() {
    if let place { heap?.discard(place) }
  }

  public var isContentDiscarded: Bool {
    guard let heap, let place else { return true }
    let state = heap.word(place).state
    return !state.isUsed || state.isPurging || state.generation != place.generation
  }

  /// Runs `body` with the bytes, which stay meanwhile; `nil`: they were discarded, make them again. The pointer
  /// is valid for `body` only.
  public func withContent<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    try withMutableContent { bytes throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
  }

  /// The same with bytes that can be written to. If some code writes while other code reads, you must keep them
  /// apart.
  public func withMutableContent<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let heap, let place, beginContentAccess() else { return nil }
    defer { endContentAccess() }
    return try body(heap.bytes(place, count: count))
  }
}
