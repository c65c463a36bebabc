import Glibc
import Linux

// An overlay is an image that has only the pages that have changed since an earlier image, its
// base. It lists the pages of the base that supply the others. docs/image-format.md, sections 8 and
// 9.

/// The random number that identifies an image.
struct ImageID: Hashable, Sendable {
  var halves: (UInt64, UInt64)

  static func random() -> ImageID {
    ImageID(halves: (.random(in: 1...(.max)), .random(in: 0...(.max))))
  }

  static func == (one: ImageID, other: ImageID) -> Bool { one.halves == other.halves }

  func hash(into hasher: inout Hasher) {
    hasher.combine(halves.0)
    hasher.combine(halves.1)
  }
}

/// What an overlay records about its base.
struct BaseReference: Sendable {
  var id: ImageID
  /// The checksum of the base's index, which has the offset and length of every chunk of the base.
  var indexChecksum: UInt32
  var fileLength: UInt64
  var segments: SegmentList

  var bytes: UInt64 { segments.reduce(0) { $0 + $1.ranges.bytes } }
}

extension ImageLayout {
  /// The path of the file that stays while the worker runs.
  static func basePath(of path: String) -> String { path + ".base" }
}

/// The reference in the form of a section of the index.
extension BaseReference {
  var section: [UInt8] {
    var writer = ByteWriter()
    writer.append(id.halves.0)
    writer.append(id.halves.1)
    writer.append(fileLength)
    writer.append(indexChecksum)
    writer.append(UInt32(segments.count))
    for segment in segments {
      writer.append(segment.process)
      writer.append(segment.chunk)
      writer.append(UInt32(segment.ranges.count))
      for range in segment.ranges {
        writer.append(range.address)
        writer.append(range.length)
      }
    }
    return writer.bytes
  }

  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    id = try ImageID(&reader)
    fileLength = try reader.read(UInt64.self)
    indexChecksum = try reader.read(UInt32.self)
    segments = try SegmentList(&reader)
  }
}

extension ImageID {
  var section: [UInt8] {
    var writer = ByteWriter()
    writer.append(halves.0)
    writer.append(halves.1)
    return writer.bytes
  }

  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    halves = (try reader.read(UInt64.self), try reader.read(UInt64.self))
  }
}

/// A chunk to read from an image or its base, and the pages that are needed from it.
struct RestoreStep: Sendable {
  let isOfBase: Bool
  let chunk: ImageChunk
  /// The process's index in the image, even if the chunk is in the base.
  let process: Int
  /// The pages that are needed: all of the chunk's, if it is a chunk of the image itself.
  let ranges: [PageRange]
  /// The number of bytes of the pages that are needed.
  let length: Int
  /// True if the base of the next image has these pages, so that writes to them matter.
  let isInNextBase: Bool
  /// True if a lazy restore may leave these pages out until the process runs.
  var isBackgroundFilled: Bool { chunk.isBackgroundFilled }

  init(
    isOfBase: Bool, chunk: ImageChunk, process: Int, ranges: [PageRange], isInNextBase: Bool
  ) {
    self.isOfBase = isOfBase
    self.chunk = chunk
    self.process = process
    self.ranges = ranges
    self.isInNextBase = isInNextBase
    length = Int(ranges.bytes)
  }

  /// Returns the offset of a page among the loaded pages, or `nil` if it isn't one of them.
  func offset(of page: UInt64) -> Int? {
    var offset = 0
    for range in ranges {
      if range.contains(page) { return offset + Int(page - range.address) }
      offset += Int(range.length)
    }
    return nil
  }
}

extension ImageReader {
  /// The base of this image, opened.
  var base: ImageReader? { openBase.first }

  /// Opens an image, and its base if it has one. Checks the header, the index and the reference to
  /// the base. Chunks are checked when they are read.
  public init(path: String) throws(ImageError) { try self.init(path: path, heldBase: nil) }

  /// - Parameter heldBase: an image that is already open and may be the base.
  init(path: String, heldBase: ImageReader?) throws(ImageError) {
    try self.init(alone: path)
    guard let reference else { return }
    let base: ImageReader
    if let heldBase, heldBase.id == reference.id {
      base = heldBase
      try base.loadLists()
    } else {
      base = try ImageReader(alone: ImageLayout.basePath(of: path))
    }
    openBase = [base]
    try check(reference, against: base)
  }

  /// Loads a chunk's pages, from the image or from its base, to the start of `target`. All readers
  /// of chunks use this function.
  func load(
    _ step: RestoreStep, stored: UnsafeMutableRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer, with decompressor: ChunkDecompressor
  ) throws(ImageError) {
    let whole = UnsafeMutableRawBufferPointer(rebasing: target[..<step.chunk.length])
    try (step.isOfBase ? base ?? self : self).read(
      step.chunk, stored: stored, into: whole, with: decompressor)
    guard step.length < step.chunk.length, let start = target.baseAddress else { return }
    guard let offsets = step.chunk.offsets(of: step.ranges) else {
      preconditionFailure("a step has pages of its chunk")
    }
    // Closes the gaps. Both lists of ranges are sorted by address, so no page is overwritten before
    // it is moved.
    var end = 0
    for (range, offset) in zip(step.ranges, offsets) {
      if end != offset { memmove(start + end, start + offset, Int(range.length)) }
      end += Int(range.length)
    }
  }

  /// Checks a reference against the base that it names. The base must be the same file, and must
  /// have the pages that the image needs from it, for the same process.
  private func check(_ reference: BaseReference, against base: ImageReader) throws(ImageError) {
    guard base.id == reference.id, base.indexChecksum == reference.indexChecksum,
      base.fileLength == reference.fileLength, base.reference == nil
    else { throw .foreignBase(path: path, base: base.path) }
    let chunks = base.chunks
    for segment in reference.segments {
      guard Int(segment.process) < processes.count, Int(segment.chunk) < chunks.count,
        !segment.ranges.isEmpty
      else { throw .damaged(path: path, reason: "it refers to pages that its base doesn't have") }
      let chunk = chunks[Int(segment.chunk)]
      guard processes[Int(segment.process)].identity == base.processes[Int(chunk.process)].identity,
        chunk.offsets(of: segment.ranges) != nil
      else { throw .damaged(path: path, reason: "it refers to pages that its base doesn't have") }
    }
  }
}

extension ImageChunk {
  /// Returns the offsets of ranges of pages, sorted by address, in the chunk's data, or `nil` if
  /// the chunk doesn't have them.
  func offsets(of wanted: [PageRange]) -> [Int]? {
    var offsets: [Int] = []
    offsets.reserveCapacity(wanted.count)
    var offset = 0
    var next = 0
    for range in ranges {
      while next < wanted.count, range.contains(wanted[next].address) {
        let inside = wanted[next].address - range.address
        guard wanted[next].length > 0, wanted[next].length <= range.length - inside,
          wanted[next].address % pageSize == 0, wanted[next].length % pageSize == 0
        else { return nil }
        let start = offset + Int(inside)
        if let last = offsets.last, last + Int(wanted[next - 1].length) > start { return nil }
        offsets.append(start)
        next += 1
      }
      offset += Int(range.length)
    }
    return next == wanted.count ? offsets : nil
  }
}
