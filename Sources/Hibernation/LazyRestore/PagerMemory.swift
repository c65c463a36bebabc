import CLinux
import Linux
import Synchronization

/// What a pager has in memory. A daemon may have a pager for each of a thousand trimmed workers,
/// and nearly all of them need nothing for hours.
extension Pager {
  /// How long a trimmed worker hasn't waited for a page.
  enum Stage {
    /// It may wait for another page soon.
    case serving
    /// It needs no buffers.
    case quiet
    /// The lists of its image are dropped as well: to read them again takes a fraction of a
    /// millisecond. It needs no thread.
    case resting

    /// The time until the next stage, in ms. A quiet worker is checked after this time: it may
    /// have executed another program.
    func wait(_ end: TrimEnd) -> Int32 {
      if end.isBrief.load(ordering: .relaxed) { return 1 }
      let isCrowded = Pager.servingTrimmed.load(ordering: .relaxed) > Pager.fewServing
      return self == .quiet && !isCrowded ? end.listsDropAfter : 1000
    }
  }

  /// The pagers of trimmed workers that don't rest. Each takes 0.1 MB: if there are more than a
  /// few, each rests as soon as its worker is quiet.
  static let servingTrimmed = Atomic(0)
  fileprivate static let fewServing = 32

  private var listsAreDropped: Bool {
    get { trimEnd?.listsAreDropped.load(ordering: .relaxed) == true }
    set { trimEnd?.listsAreDropped.store(newValue, ordering: .relaxed) }
  }

  /// Frees what isn't needed in the next stage, and returns that.
  func freeMemory(after stage: Stage) -> Stage {
    if listsAreDropped { return .resting }
    guard stage == .serving else {
      listsAreDropped = true
      image.dropLists()
      for process in processes {
        process.dropChunks()
        process.journal.freeSlots()
      }
      return .resting
    }
    dropBuffers()
    for process in processes { process.dropCache() }
    sequentialUse.reset()
    recount()
    return .quiet
  }

  /// Counts what is missing. The lists of the image must be loaded.
  func recount() { recounted?(processes.reduce(0) { $0 + $1.missingLength(in: image) }) }

  /// Reads the lists of the image again. Nothing can be filled before that.
  func loadLists() throws {
    guard listsAreDropped else { return }
    try retry.run { () throws(ImageError) in try image.loadLists() }
    for process in processes { process.findChunks(in: image) }
    listsAreDropped = false
  }

  /// Returns a buffer, which keeps its content until it is used for another chunk.
  func buffer(forChild: Bool = false) -> ChunkBuffer {
    if let buffer = forChild ? scratch.forChild : scratch.forWorker { return buffer }
    let made = ChunkBuffer()
    if forChild { scratch.forChild = made } else { scratch.forWorker = made }
    return made
  }

  func dropBuffers() { scratch = (nil, nil) }
}
