import Glibc
import Linux

// An overlay is an image that has only what has changed since an earlier one, its base, and says which
// pages of the base the rest is. docs/image-format.md, sections 8 and 9.

/// Names an image among all others.
struct ImageID: Hashable, Sendable {
  var words: (UInt64, UInt64)

  static func random() -> ImageID {
    ImageID(words: (.random(in: 1...(.max)), .random(in: 0...(.max))))
  }

  static func == (one: ImageID, other: ImageID) -> Bool { one.words == other.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}

/// What an overlay says of its base.
struct BaseReference: Sendable {
  var id: ImageID
  /// Of the base's index, which has the place and length of every chunk of it.
  var indexChecksum: UInt32
  var fileLength: UInt64
  var parts: [BasePart]

  var bytes: UInt64 { parts.reduce(0) { $0 + $1.ranges.bytes } }
}

extension ImageLayout {
  /// The file that stays while the worker runs.
  static func basePath(of path: String) -> String { path + ".base" }
}

extension BaseReference {
  var section: [UInt8] {
    var writer = ByteWriter()
    writer.append(id.words.0)
    writer.append(id.words.1)
    writer.append(fileLength)
    writer.append(indexChecksum)
    writer.append(UInt32(parts.count))
    for part in parts {
      writer.append(part.process)
      writer.append(part.chunk)
      writer.append(UInt32(part.ranges.count))
      for range in part.ranges {
        writer.append(range.address)
        writer.append(range.length)
      }
    }
    return writer.bytes
  }

  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    id = try ImageID(&reader)
    fileLength = try reader.take(UInt64.self)
    indexChecksum = try reader.take(UInt32.self)
    parts = []
    for _ in 0..<(try reader.take(UInt32.self)) {
      var part = BasePart(
        process: try reader.take(UInt32.self), chunk: try reader.take(UInt32.self), ranges: [])
      for _ in 0..<(try reader.take(UInt32.self)) {
        part.ranges.append(
          PageRange(
            address: try reader.take(UInt64.self), length: try reader.take(UInt64.self)))
      }
      parts.append(part)
    }
  }
}

extension ImageID {
  var section: [UInt8] {
    var writer = ByteWriter()
    writer.append(words.0)
    writer.append(words.1)
    return writer.bytes
  }

  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    words = (try reader.take(UInt64.self), try reader.take(UInt64.self))
  }
}

/// A chunk to be read, of an image or its base, and the pages that are wanted of it.
struct RestoreStep: Sendable {
  let isOfBase: Bool
  let chunk: ImageChunk
  /// In the image, also where the chunk is of the base.
  let process: Int
  /// All of them, where it is a chunk of the image itself.
  let ranges: [PageRange]
  /// Where each range lies in the chunk's pages; empty: one after the other.
  let offsets: [Int]
}

extension ImageReader {
  /// What it lies over.
  var base: ImageReader? { openBase.first }

  /// Opens an image, and its base where it has one.
  public init(path: String) throws(ImageError) { try self.init(path: path, heldBase: nil) }

  /// - Parameter heldBase: its base, perhaps, open since before.
  init(path: String, heldBase: ImageReader?) throws(ImageError) {
    try self.init(alone: path)
    guard let reference else { return }
    let base: ImageReader
    if let heldBase, heldBase.id == reference.id {
      base = heldBase
    } else {
      base = try ImageReader(alone: ImageLayout.basePath(of: path))
    }
    try check(reference, against: base)
    openBase = [base]
  }

  /// What brings all pages back.
  func steps(leavesDeferred: Bool = false) -> [RestoreStep] {
    let own = chunks.filter { !leavesDeferred || !$0.isDeferred }.map {
      RestoreStep(
        isOfBase: false, chunk: $0, process: Int($0.process), ranges: $0.ranges, offsets: [])
    }
    guard let base, let reference else { return own }
    return own
      + reference.parts.map { part in
        let chunk = base.chunks[Int(part.chunk)]
        return RestoreStep(
          isOfBase: true, chunk: chunk, process: Int(part.process), ranges: part.ranges,
          offsets: chunk.offsets(of: part.ranges) ?? [])
      }
  }

  /// The one way to a chunk's pages, of the image or of its base. They begin at `target`'s begin.
  func load(
    _ step: RestoreStep, stored: UnsafeMutableRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer, with decompressor: borrowing ChunkDecompressor
  ) throws(ImageError) {
    let whole = UnsafeMutableRawBufferPointer(rebasing: target[..<step.chunk.length])
    try (step.isOfBase ? base ?? self : self).read(
      step.chunk, stored: stored, into: whole, with: decompressor)
    guard let start = target.baseAddress else { return }
    // Closes the gaps. Ranges are by address and so are the chunk's: nothing is overwritten that is
    // still to be moved.
    var end = 0
    for (range, offset) in zip(step.ranges, step.offsets) {
      if end != offset { memmove(start + end, start + offset, Int(range.length)) }
      end += Int(range.length)
    }
  }

  /// Holds a reference against the base that it names: it must be the very same file, and have what is
  /// taken from it, for the same process.
  func check(_ reference: BaseReference, against base: ImageReader) throws(ImageError) {
    guard base.id == reference.id, base.indexChecksum == reference.indexChecksum,
      base.fileLength == reference.fileLength, base.reference == nil
    else { throw .foreignBase(path: path, base: base.path) }
    for part in reference.parts {
      guard Int(part.process) < processes.count, Int(part.chunk) < base.chunks.count,
        !part.ranges.isEmpty
      else { throw .damaged(path: path, part: "it takes what its base doesn't have") }
      let chunk = base.chunks[Int(part.chunk)]
      guard processes[Int(part.process)].identity == base.processes[Int(chunk.process)].identity,
        chunk.offsets(of: part.ranges) != nil
      else { throw .damaged(path: path, part: "it takes what its base doesn't have") }
    }
  }
}

extension ImageChunk {
  /// Where ranges of pages, by address, lie in the chunk's data; `nil` where it doesn't have them.
  func offsets(of wanted: [PageRange]) -> [Int]? {
    var offsets: [Int] = []
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
