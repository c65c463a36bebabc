import Linux

/// Pages of one process that a base's chunk supplies.
struct BasePart: Sendable, Equatable {
  /// Index of the process: in the overlay's image, as in its chunks.
  var process: UInt32
  /// Index of the chunk in the base.
  var chunk: UInt32
  /// By address; each lies within one range of the chunk.
  var ranges: [PageRange]
}

/// Which pages of one process a base has, and where.
struct BasePages: Sendable {
  private struct Piece {
    var range: PageRange
    var chunk: UInt32
  }
  /// By address.
  private let pieces: [Piece]
  let ranges: [PageRange]
  /// Those that a lazy restore puts in place before the process runs.
  let present: [PageRange]

  init(chunks: [ImageChunk], process: Int) {
    pieces = chunks.enumerated().filter { Int($1.process) == process }.flatMap { index, chunk in
      chunk.ranges.map { Piece(range: $0, chunk: UInt32(index)) }
    }.sorted { $0.range.address < $1.range.address }
    ranges = pieces.map(\.range).union()
    present = pieces.filter { !chunks[Int($0.chunk)].isBackgroundFilled }.map(\.range).union()
  }

  /// The chunks that have these pages. The base must have all of the pages.
  func parts(of wanted: [PageRange], process: UInt32) -> [BasePart] {
    var byChunk: [UInt32: [PageRange]] = [:]
    var next = 0
    for range in wanted {
      while next < pieces.count, pieces[next].range.end <= range.address { next += 1 }
      var index = next
      while index < pieces.count, pieces[index].range.address < range.end {
        let piece = pieces[index]
        // Not joined with its neighbour, which may belong to another range of the chunk.
        if let part = range.intersection(with: piece.range) {
          byChunk[piece.chunk, default: []].append(part)
        }
        index += 1
      }
    }
    return byChunk.sorted { $0.key < $1.key }.map {
      BasePart(process: process, chunk: $0.key, ranges: $0.value)
    }
  }
}

/// What is known about writes to a process since its memory was restored. All lists are sorted by address.
struct WriteKnowledge: Sendable {
  /// Ranges in which the kernel records writes.
  var tracked: [PageRange] = []
  /// Pages of those ranges that haven't been written to.
  var unwritten: [PageRange] = []
  /// Pages that had the base's content when the worker was resumed.
  var current: [PageRange] = []
}

/// Which of the pages that move must be written to the new image, and which the base has already.
struct PageDivision: Sendable {
  /// To be written.
  var changed: [PageRange] = []
  /// The same as in the base.
  var kept: [PageRange] = []
  /// The base has a page at that address; only a comparison shows whether the content is the same.
  var doubtful: [PageRange] = []
  /// The program has written to them since the base was made, and the base has a page at that address. They count as
  /// changed, but a program may write the bytes that were there: python counts references to each object that it looks at.
  var written: [PageRange] = []

  /// A page is kept only if it had the base's content when the worker was resumed, and the kernel has
  /// recorded writes to its range since then, and recorded none to this page. If nothing is known about a
  /// page, it is compared.
  init(
    of moving: [PageRange], base: [PageRange], knowing: WriteKnowledge
  ) {
    let (known, others) = moving.split(by: base)
    let (tracked, untracked) = known.split(by: knowing.tracked)
    let unwritten = tracked.split(by: knowing.unwritten)
    let current = unwritten.inside.split(by: knowing.current)
    kept = current.inside
    doubtful = untracked
    written = (unwritten.outside + current.outside).union()
    changed = others
  }
}
