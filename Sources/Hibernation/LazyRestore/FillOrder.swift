import Linux

/// The order in which the chunks of a background fill are filled: by address, from the chunk on
/// that the worker has last waited for, in the direction in which it uses its memory. (Allocators
/// give new memory below the earlier one, so a program that reads its objects in their order may
/// well move downwards.)
struct FillOrder: Sendable {
  /// All chunks, sorted by address.
  private let chunks: [Int]
  /// The index of each chunk in `chunks`.
  private let indexOfChunk: [Int?]
  /// Chunks that a thread has begun with.
  private var claimed = ChunkSet()
  /// Chunks that a thread has begun with and couldn't read.
  private var returned: [Int] = []
  /// The next indices to try, downwards and upwards from the chunk that was wanted last.
  private var below: Int
  private var above: Int
  private var isUpward = true
  private var lastRequested: Int?

  /// - Parameter chunks: their indices in `ImageReader.steps`, sorted by address.
  init(_ chunks: [Int]) {
    self.chunks = chunks
    var indices = [Int?](repeating: nil, count: (chunks.max() ?? -1) + 1)
    for (index, chunk) in chunks.enumerated() { indices[chunk] = index }
    indexOfChunk = indices
    below = -1
    above = 0
  }

  /// Claims the next chunk that no thread has begun with. Returns `nil` if there is none.
  mutating func claimNext() -> Int? {
    while let chunk = returned.popLast() {
      if claimed.insert(chunk) { return chunk }
    }
    for up in [isUpward, !isUpward] {
      while let index = next(up) {
        if claimed.insert(chunks[index]) { return chunks[index] }
      }
    }
    return nil
  }

  /// Claims a chunk. Returns false if a thread has begun with it.
  mutating func claim(_ chunk: Int) -> Bool { claimed.insert(chunk) }

  /// Returns a chunk that couldn't be read: another thread may begin with it.
  mutating func unclaim(_ chunk: Int) {
    claimed.remove(chunk)
    returned.append(chunk)
  }

  /// Continues from this chunk, because a thread of the worker waits for it: its neighbours are
  /// probably next.
  mutating func prioritizeNeighbors(of chunk: Int) {
    guard chunk < indexOfChunk.count, let index = indexOfChunk[chunk], index != lastRequested
    else { return }
    if let lastRequested { isUpward = index > lastRequested }
    lastRequested = index
    (below, above) = (index - 1, index + 1)
  }

  private mutating func next(_ up: Bool) -> Int? {
    if up {
      guard above < chunks.count else { return nil }
      above += 1
      return above - 1
    }
    guard below >= 0 else { return nil }
    below -= 1
    return below + 1
  }
}

/// Chunks of one image, a bit for each. A `Set` takes far more memory, and hashes each number.
struct ChunkSet: Sendable {
  private var bits: [UInt64] = []
  private(set) var count = 0

  func contains(_ chunk: Int) -> Bool {
    chunk / 64 < bits.count && bits[chunk / 64] & (1 << UInt64(chunk % 64)) != 0
  }

  /// Adds a chunk. Returns false if it was in the set.
  @discardableResult
  mutating func insert(_ chunk: Int) -> Bool {
    if contains(chunk) { return false }
    while bits.count <= chunk / 64 { bits.append(0) }
    bits[chunk / 64] |= 1 << UInt64(chunk % 64)
    count += 1
    return true
  }

  mutating func remove(_ chunk: Int) {
    guard contains(chunk) else { return }
    bits[chunk / 64] &= ~(1 << UInt64(chunk % 64))
    count -= 1
  }
}
