import Linux
import Synchronization

// An image of 15 MB has a thousand chunks, and a daemon may have a thousand trimmed workers. So the
// lists of an index are packed: a chunk has 24 bytes, and 8 for each of its ranges.

/// Lists of ranges of pages.
struct RangeLists: Sendable {
  /// Each range: its address, and in the low 12 bits, which an address of a page doesn't use, its
  /// length in units of 4 KiB.
  private var packed: [UInt64] = []
  /// The index after the last range of each list.
  private var ends: [UInt32] = []
  private static let unit: UInt64 = 4096

  var count: Int { ends.count }

  subscript(index: Int) -> [PageRange] {
    let start = index == 0 ? 0 : Int(ends[index - 1])
    return packed[start..<Int(ends[index])].map {
      PageRange(address: $0 & ~(Self.unit - 1), length: ($0 & (Self.unit - 1)) * Self.unit)
    }
  }

  /// - Parameter ranges: whole pages, each range at most as long as a chunk.
  mutating func append(_ ranges: [PageRange]) {
    packed += ranges.map { $0.address | $0.length / Self.unit }
    ends.append(UInt32(packed.count))
  }

  /// Reads the next list of an index: whole pages, together at most as long as a chunk.
  ///
  /// - Returns: the number of bytes of its pages.
  mutating func append(from reader: inout ByteReader) throws(ByteReader.Exhausted) -> UInt32 {
    var length: UInt64 = 0
    for _ in 0..<(try reader.read(UInt32.self)) {
      let range = PageRange(
        address: try reader.read(UInt64.self), length: try reader.read(UInt64.self))
      guard range.isSound, range.length <= UInt64(ImageLayout.chunkLength) - length else {
        throw ByteReader.Exhausted()
      }
      packed.append(range.address | range.length / Self.unit)
      length += range.length
    }
    ends.append(UInt32(packed.count))
    return UInt32(length)
  }

  mutating func reserve(_ count: Int) {
    packed.reserveCapacity(count)
    ends.reserveCapacity(count)
  }
}

/// The chunks of an image.
struct ChunkList: RandomAccessCollection, Sendable {
  private struct Entry {
    let offset: UInt64
    let storedLength, process, flags, length: UInt32
  }
  private var entries: [Entry] = []
  private var ranges = RangeLists()

  var startIndex: Int { 0 }
  var endIndex: Int { entries.count }

  subscript(index: Int) -> ImageChunk {
    let entry = entries[index]
    var chunk = ImageChunk(
      process: entry.process, writable: false, offset: entry.offset,
      storedLength: entry.storedLength, ranges: ranges[index])
    chunk.flags = entry.flags
    return chunk
  }

  /// Reads the section of an index.
  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    let count = try reader.read(UInt32.self)
    // A damaged count might be any number, and a chunk has at least 24 bytes.
    let room = Swift.min(Int(count), reader.count / 24)
    entries.reserveCapacity(room)
    ranges.reserve(room)
    for _ in 0..<count {
      let (process, flags) = (try reader.read(UInt32.self), try reader.read(UInt32.self))
      let offset = try reader.read(UInt64.self)
      entries.append(
        Entry(
          offset: offset, storedLength: try reader.read(UInt32.self), process: process,
          flags: flags, length: try ranges.append(from: &reader)))
    }
  }

  /// The number of uncompressed bytes.
  var dataLength: UInt64 { entries.reduce(0) { $0 + UInt64($1.length) } }

  /// True if all chunks have pages, lie in the file's data, and belong to one of the processes.
  func fit(dataEnd: UInt64, processCount: Int) -> Bool {
    entries.allSatisfy { entry in
      let end = entry.offset.addingReportingOverflow(UInt64(entry.storedLength))
      return entry.offset >= UInt64(ImageLayout.headerLength) && !end.overflow
        && end.partialValue <= dataEnd && Int(entry.process) < processCount
        && entry.storedLength <= ImageLayout.storedLength && entry.length > 0
    }
  }
}

/// The pages that a base supplies.
struct SegmentList: RandomAccessCollection, Sendable {
  private struct Entry { let process, chunk: UInt32 }
  private var entries: [Entry] = []
  private var ranges = RangeLists()

  init(_ segments: [BaseSegment] = []) { for segment in segments { append(segment) } }

  var startIndex: Int { 0 }
  var endIndex: Int { entries.count }

  subscript(index: Int) -> BaseSegment {
    BaseSegment(
      process: entries[index].process, chunk: entries[index].chunk, ranges: ranges[index])
  }

  /// - Parameter segment: its ranges must be sound.
  private mutating func append(_ segment: BaseSegment) {
    entries.append(Entry(process: segment.process, chunk: segment.chunk))
    ranges.append(segment.ranges)
  }

  init(_ reader: inout ByteReader) throws(ByteReader.Exhausted) {
    for _ in 0..<(try reader.read(UInt32.self)) {
      entries.append(
        Entry(process: try reader.read(UInt32.self), chunk: try reader.read(UInt32.self)))
      _ = try ranges.append(from: &reader)
    }
  }
}

/// The steps that restore all pages of an image: first its own chunks, then what its base supplies.
struct RestoreSteps: RandomAccessCollection, Sendable {
  let chunks: ChunkList
  /// The reference to the base, and the base's chunks. `nil`: the image is complete.
  let base: (segments: SegmentList, chunks: ChunkList)?

  var startIndex: Int { 0 }
  var endIndex: Int { chunks.count + (base?.segments.count ?? 0) }

  subscript(index: Int) -> RestoreStep {
    guard index >= chunks.count, let base else {
      let chunk = chunks[index]
      return RestoreStep(
        isOfBase: false, chunk: chunk, process: Int(chunk.process), ranges: chunk.ranges,
        isInNextBase: self.base == nil)
    }
    let segment = base.segments[index - chunks.count]
    return RestoreStep(
      isOfBase: true, chunk: base.chunks[Int(segment.chunk)], process: Int(segment.process),
      ranges: segment.ranges, isInNextBase: true)
  }
}

/// The lists of an image's index that take memory. A pager whose worker needs nothing drops them,
/// also while another thread uses the image's base, which then reads them again.
final class ImageLists: Sendable {
  typealias Lists = (chunks: ChunkList, reference: BaseReference?)
  private let lists: Mutex<Lists?>
  private let read: @Sendable () throws(ImageError) -> Lists

  init(_ lists: Lists, read: @escaping @Sendable () throws(ImageError) -> Lists) {
    self.lists = Mutex(lists)
    self.read = read
  }

  var areLoaded: Bool { lists.withLock { $0 != nil } }

  /// The lists. They were read a moment ago, so the disk can hardly fail here.
  var loaded: Lists {
    do throws(ImageError) { return try load() } catch {
      preconditionFailure("an index that was read before can't be read again: \(error)")
    }
  }

  func load() throws(ImageError) -> Lists {
    try lists.withLock { lists throws(ImageError) in
      if let lists { return lists }
      let again = try read()
      lists = again
      return again
    }
  }

  func drop() { lists.withLock { $0 = nil } }
}
