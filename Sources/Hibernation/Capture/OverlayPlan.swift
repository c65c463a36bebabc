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

/// Where a base has which pages of one process.
struct BasePages: Sendable {
  private struct Piece {
    var range: PageRange
    var chunk: UInt32
  }
  /// By address.
  private let pieces: [Piece]
  let ranges: [PageRange]

  init(chunks: [ImageChunk], process: Int) {
    pieces = chunks.enumerated().filter { Int($1.process) == process }.flatMap { index, chunk in
      chunk.ranges.map { Piece(range: $0, chunk: UInt32(index)) }
    }.sorted { $0.range.address < $1.range.address }
    ranges = pieces.map(\.range).union()
  }

  /// The chunks that have these pages, all of which the base has.
  func parts(of wanted: [PageRange], process: UInt32) -> [BasePart] {
    var byChunk: [UInt32: [PageRange]] = [:]
    var next = 0
    for range in wanted {
      while next < pieces.count, pieces[next].range.end <= range.address { next += 1 }
      var index = next
      while index < pieces.count, pieces[index].range.address < range.end {
        let piece = pieces[index]
        // Not joined with its neighbour: that may be of another range of the chunk.
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

/// What is known of writes to a process since its memory was brought back. By address, all of it.
struct WriteKnowledge: Sendable {
  /// Where writes would be known.
  var tracked: [PageRange] = []
  /// Pages of those places that haven't been written.
  var unwritten: [PageRange] = []
  /// Pages that had the base's content when the worker went on.
  var current: [PageRange] = []
}

/// Which of the pages that move must be written to the new image, and which the base has already.
struct PageDivision: Sendable {
  /// To be written.
  var changed: [PageRange] = []
  /// As they are in the base.
  var kept: [PageRange] = []
  /// The base has something at that address, and whether that is it only a comparison can tell.
  var doubtful: [PageRange] = []

  /// A page is kept on one evidence only: it had the base's content when the worker went on, and where
  /// it lies every write would be known, and there was none. Where nothing is known, it is compared.
  init(
    of moving: [PageRange], base: [PageRange], knowing: WriteKnowledge
  ) {
    let (known, others) = moving.split(by: base)
    let (tracked, untracked) = known.split(by: knowing.tracked)
    let unwritten = tracked.split(by: knowing.unwritten)
    let current = unwritten.inside.split(by: knowing.current)
    kept = current.inside
    doubtful = untracked
    changed = (others + unwritten.outside + current.outside).union()
  }
}
