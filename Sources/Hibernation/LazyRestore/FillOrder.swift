import Linux

/// The order in which the chunks of a background fill are filled: by address, from the chunk on
/// that the worker has last waited for, in the direction in which it uses its memory. (Allocators
/// give new memory below the earlier one, so a program that reads its objects in their order may
/// well move downwards.)
struct FillOrder: Sendable {
  /// All chunks, sorted by address.
  private let chunks: [Int]
  /// The index of each chunk in `chunks`.
  private let indexOfChunk: [Int: Int]
  /// Chunks that a thread has begun with.
  private var claimed: Set<Int> = []
  /// Chunks that a thread has begun with and couldn't read.
  private var returned: [Int] = []
  /// The next indices to try, downwards and upwards from the chunk that was wanted last.
  private var below: Int
  private var above: Int
  private var isUpward = true
  private var lastRequested: Int?

  /// - Parameter chunks: their indices in `ImageReader.steps`, and their lowest addresses.
  init(_ chunks: [(chunk: Int, address: UInt64)]) {
    self.chunks = chunks.sorted { ($0.address, $0.chunk) < ($1.address, $1.chunk) }.map(\.chunk)
    indexOfChunk = Dictionary(
      self.chunks.enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { one, _ in one })
    below = -1
    above = 0
  }

  /// Claims the next chunk that no thread has begun with. Returns `nil` if there is none.
  mutating func claimNext() -> Int? {
    while let chunk = returned.popLast() {
      if claimed.insert(chunk).inserted { return chunk }
    }
    for up in [isUpward, !isUpward] {
      while let index = next(up) {
        if claimed.insert(chunks[index]).inserted { return chunks[index] }
      }
    }
    return nil
  }

  /// Claims a chunk. Returns false if a thread has begun with it.
  mutating func claim(_ chunk: Int) -> Bool { claimed.insert(chunk).inserted }

  /// Returns a chunk that couldn't be read: another thread may begin with it.
  mutating func unclaim(_ chunk: Int) {
    claimed.remove(chunk)
    returned.append(chunk)
  }

  /// Continues from this chunk, because a thread of the worker waits for it: its neighbours are
  /// probably next.
  mutating func prioritizeNeighbors(of chunk: Int) {
    guard let index = indexOfChunk[chunk], index != lastRequested else { return }
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
