import Linux

/// Pages of one process that one chunk of a base supplies.
struct BaseSegment: Sendable, Equatable {
  /// The index of the process in the overlay's image, as in its chunks.
  var process: UInt32
  /// The index of the chunk in the base.
  var chunk: UInt32
  /// The pages, sorted by address. Each range lies within one range of the chunk.
  var ranges: [PageRange]
}

/// The pages of one process that a base has, and the chunks that they are in.
struct BasePages: Sendable {
  private struct Piece {
    var range: PageRange
    var chunk: UInt32
    var isPresent: Bool
  }
  /// The pieces, sorted by address.
  private let pieces: [Piece]
  let ranges: [PageRange]
  /// The pages that a lazy restore puts in place before the process runs.
  let present: [PageRange]

  init(chunks: some Sequence<ImageChunk>, process: Int) {
    pieces = chunks.enumerated().filter { Int($1.process) == process }.flatMap { index, chunk in
      chunk.ranges.map {
        Piece(range: $0, chunk: UInt32(index), isPresent: !chunk.isBackgroundFilled)
      }
    }.sorted { $0.range.address < $1.range.address }
    ranges = pieces.map(\.range).union()
    present = pieces.filter(\.isPresent).map(\.range).union()
  }

  /// Returns the chunks that have these pages. The base must have all of the pages.
  func segments(of wanted: [PageRange], process: UInt32) -> [BaseSegment] {
    var byChunk: [UInt32: [PageRange]] = [:]
    var next = 0
    for range in wanted {
      while next < pieces.count, pieces[next].range.end <= range.address { next += 1 }
      var index = next
      while index < pieces.count, pieces[index].range.address < range.end {
        let piece = pieces[index]
        // The overlap isn't joined with its neighbour, which may belong to another range of the
        // chunk.
        if let overlap = range.intersection(with: piece.range) {
          byChunk[piece.chunk, default: []].append(overlap)
        }
        index += 1
      }
    }
    return byChunk.sorted { $0.key < $1.key }.map {
      BaseSegment(process: process, chunk: $0.key, ranges: $0.value)
    }
  }
}

/// The writes to a process since its memory was restored, as far as they are known. All lists are
/// sorted by address.
struct WriteKnowledge: Sendable {
  /// Ranges in which the kernel records writes.
  var tracked: [PageRange] = []
  /// Pages of those ranges that haven't been written to.
  var unwritten: [PageRange] = []
  /// Pages that had the base's content when the worker was resumed.
  var current: [PageRange] = []
}

/// Divides the pages that move: some must be written to the new image, the base has others already.
struct PageDivision: Sendable {
  /// Pages that must be written.
  var changed: [PageRange] = []
  /// Pages that the base has with the same content.
  var kept: [PageRange] = []
  /// Pages at whose address the base has a page. Only a comparison shows whether the content is the
  /// same.
  var doubtful: [PageRange] = []
  /// Pages that the program has written to since the base was made, and at whose address the base
  /// has a page. They count as changed, but a program may write the bytes that were there: python
  /// counts the references to each object that it reads.
  var written: [PageRange] = []

  /// Divides pages. A page is kept only if it had the base's content when the worker was resumed,
  /// and the kernel has recorded writes to its range since then, and recorded none to this page. If
  /// nothing is known about a page, it is compared.
  init(
    of moving: [PageRange], base: [PageRange], knowing: WriteKnowledge
  ) {
    let (inBase, others) = moving.split(by: base)
    let (tracked, untracked) = inBase.split(by: knowing.tracked)
    let unwritten = tracked.split(by: knowing.unwritten)
    let current = unwritten.inside.split(by: knowing.current)
    kept = current.inside
    doubtful = untracked
    written = (unwritten.outside + current.outside).union()
    changed = others
  }
}
