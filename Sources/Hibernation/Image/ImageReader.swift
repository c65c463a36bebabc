import Checksum
import Glibc
import Linux

/// Reads an image and trusts nothing in it: every offset and count is checked against the file,
/// header and index against their checksums, and each chunk against its own.
public struct ImageReader: Sendable {
  public let path: String
  public let fileLength: UInt64
  public let progress: ImageProgress
  public private(set) var processes: [ImageProcess]
  /// The lists of the index that take memory. All copies of this value share them.
  let lists: ImageLists
  /// The mappings that may have missing pages, empty if the image wasn't made for lazy restores.
  let mappings: [ImageMapping]
  let file: Descriptor
  /// The image's identity. Without one the image can't be a base.
  let id: ImageID?
  let indexChecksum: UInt32
  /// The base: none or one element, because a struct can't contain itself.
  var openBase: [ImageReader] = []
  /// The key for an encrypted image.
  private let seal: Seal?

  var chunks: ChunkList { lists.loaded.chunks }
  /// The reference to the base, if the image is an overlay.
  var reference: BaseReference? { lists.loaded.reference }
  /// The steps that restore all pages. An overlay must have been opened with its base.
  var steps: RestoreSteps {
    let (chunks, reference) = lists.loaded
    guard let reference, let base else { return RestoreSteps(chunks: chunks, base: nil) }
    return RestoreSteps(chunks: chunks, base: (reference.segments, base.chunks))
  }

  /// The number of uncompressed bytes of all pages, those that the base supplies included.
  public var dataLength: UInt64 {
    chunks.dataLength + (reference?.bytes ?? 0)
  }

  /// This reader without the threads' registers, which only a recovery needs: for a pager, which
  /// may live as long as its worker.
  var withoutThreads: ImageReader {
    var copy = self
    for index in processes.indices { copy.processes[index].threads = [] }
    copy.openBase = openBase.map(\.withoutThreads)
    return copy
  }

  /// Opens one file, without its base.
  init(alone path: String) throws(ImageError) {
    self.path = path
    let file = try ImageFile.open(path)
    self.file = file

    let header = try ImageHeader(path: path, file: file)
    fileLength = header.fileLength
    progress = header.progress
    indexChecksum = header.indexChecksum
    let seal = try header.seal(at: path)
    self.seal = seal
    let checksum = header.indexChecksum
    let index = try Self.index(of: header, in: file, path, seal)
    (processes, mappings, id) = (index.processes, index.mappings, index.id)
    lists = ImageLists((index.chunks, index.reference)) { () throws(ImageError) in
      let header = try ImageHeader(path: path, file: file)
      guard header.indexChecksum == checksum else {
        throw .damaged(path: path, reason: "its index has changed")
      }
      let index = try Self.index(of: header, in: file, path, seal)
      return (index.chunks, index.reference)
    }
    guard mappings.allSatisfy({ Int($0.process) < processes.count }) else {
      throw .damaged(path: path, reason: "a mapping belongs to no process")
    }
  }

  /// Drops the lists of this image and its base from memory, until their next use.
  func dropLists() {
    lists.drop()
    base?.lists.drop()
  }

  /// Reads the lists again, from the files that are open, if they were dropped. Call this before
  /// their use, because a failure during it ends the daemon.
  func loadLists() throws(ImageError) {
    if let base { _ = try base.lists.load() }
    _ = try lists.load()
  }

  private static func index(
    of header: ImageHeader, in file: Descriptor, _ path: String, _ seal: Seal?
  ) throws(ImageError) -> Index {
    var bytes = try readExactly(file, path, at: header.indexOffset, count: header.indexLength)
    guard CRC32.castagnoli.checksum(of: bytes) == header.indexChecksum else {
      throw .damaged(path: path, reason: "its index has a wrong checksum")
    }
    if let seal {
      do throws(Seal.Broken) {
        try seal.open(&bytes, .index(header: header.bytes), at: header.indexOffset)
      } catch { throw .sealed(error, path: path, subject: "its index") }
    }
    let index: Index
    do throws(ByteReader.Exhausted) { index = try sections(of: bytes) } catch {
      throw .damaged(path: path, reason: "its index ends early")
    }
    guard index.chunks.fit(dataEnd: header.indexOffset, processCount: index.processes.count) else {
      throw .damaged(path: path, reason: "a chunk lies outside the file")
    }
    return index
  }

  /// Reads one chunk as it is stored.
  func readStored(
    _ chunk: ImageChunk, into stored: UnsafeMutableRawBufferPointer
  ) throws(ImageError) -> UnsafeRawBufferPointer {
    let area = UnsafeMutableRawBufferPointer(rebasing: stored[..<Int(chunk.storedLength)])
    try fill(area, from: file, path, at: chunk.offset)
    return UnsafeRawBufferPointer(area)
  }

  /// Reads and verifies one chunk into `target`, which has the chunk's length.
  func read(
    _ chunk: ImageChunk, stored: UnsafeMutableRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer, with decompressor: ChunkDecompressor
  ) throws(ImageError) {
    let area = UnsafeMutableRawBufferPointer(mutating: try readStored(chunk, into: stored))
    var length = area.count
    if let seal {
      do throws(Seal.Broken) { length = try seal.open(area, .chunk(chunk), at: chunk.offset) } catch
      {
        throw .sealed(error, path: path, subject: "the chunk at byte \(chunk.offset)")
      }
    }
    do throws(CompressionError) {
      try decompressor.decompress(
        UnsafeRawBufferPointer(rebasing: area[..<length]), into: target)
    } catch {
      if error.isShortage {
        throw .unreadable(path: path, SystemCallError("decompress", on: path, code: ENOMEM))
      }
      throw .damaged(path: path, reason: "the chunk at byte \(chunk.offset): \(error)")
    }
  }

  /// The sections of an index.
  private typealias Index = (
    processes: [ImageProcess], chunks: ChunkList, mappings: [ImageMapping], id: ImageID?,
    reference: BaseReference?
  )

  private static func sections(of index: [UInt8]) throws(ByteReader.Exhausted) -> Index {
    var reader = ByteReader(index[...])
    var processes: [ImageProcess]?
    var chunks: ChunkList?
    var mappings: [ImageMapping] = []
    var id: ImageID?
    var base: BaseReference?
    while reader.count > 0 {
      let type = try reader.read(UInt32.self)
      let flags = try reader.read(UInt32.self)
      let length = try reader.read(UInt64.self)
      var payload = ByteReader(try reader.read(count: Int(clamping: length)))
      switch type {
      case ImageLayout.Section.processes: processes = try readProcesses(&payload)
      case ImageLayout.Section.chunks: chunks = try ChunkList(&payload)
      case ImageLayout.Section.mappings: mappings = try readMappings(&payload)
      case ImageLayout.Section.identity: id = try ImageID(&payload)
      case ImageLayout.Section.base: base = try BaseReference(&payload)
      default:
        if flags & ImageLayout.mayBeSkipped == 0 { throw ByteReader.Exhausted() }
      }
    }
    guard let processes, let chunks else { throw ByteReader.Exhausted() }
    return (processes, chunks, mappings, id, base)
  }

  private static func readMappings(
    _ reader: inout ByteReader
  ) throws(ByteReader.Exhausted) -> [ImageMapping] {
    var mappings: [ImageMapping] = []
    let count = try reader.read(UInt32.self)
    mappings.reserveCapacity(min(Int(count), reader.count / 20))
    for _ in 0..<count {
      mappings.append(
        ImageMapping(
          process: try reader.read(UInt32.self), range: try readRange(&reader)))
    }
    return mappings
  }

  private static func readRange(
    _ reader: inout ByteReader
  ) throws(ByteReader.Exhausted) -> PageRange {
    let range = PageRange(
      address: try reader.read(UInt64.self), length: try reader.read(UInt64.self))
    guard range.isSound else { throw ByteReader.Exhausted() }
    return range
  }

  private static func readProcesses(
    _ reader: inout ByteReader
  ) throws(ByteReader.Exhausted) -> [ImageProcess] {
    var processes: [ImageProcess] = []
    for _ in 0..<(try reader.read(UInt32.self)) {
      var process = ImageProcess(
        pid: try reader.read(Int32.self), startTime: try reader.read(UInt64.self),
        scratchAddress: try reader.read(UInt64.self), threads: [])
      for _ in 0..<(try reader.read(UInt32.self)) {
        var thread = ImageProcess.TracedThreadState(
          tid: try reader.read(Int32.self), isWaiting: try reader.read(UInt32.self) & 1 == 1,
          signalMask: try reader.read(UInt64.self),
          registers: [])
        for _ in 0..<(try reader.read(UInt32.self)) {
          thread.registers.append(try reader.read(UInt64.self))
        }
        process.threads.append(thread)
      }
      processes.append(process)
    }
    return processes
  }
}

func readExactly(
  _ file: Descriptor, _ path: String, at offset: UInt64, count: Int
) throws(ImageError) -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: count)
  var failure: ImageError?
  bytes.withUnsafeMutableBytes { buffer in
    do throws(ImageError) {
      try fill(buffer, from: file, path, at: offset)
    } catch { failure = error }
  }
  if let failure { throw failure }
  return bytes
}

private func fill(
  _ buffer: UnsafeMutableRawBufferPointer, from file: Descriptor, _ path: String,
  at offset: UInt64
) throws(ImageError) {
  var done = 0
  while done < buffer.count {
    let tail = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
    let count: Int
    do throws(SystemCallError) {
      count = try file.read(into: tail, at: Int64(offset) + Int64(done), call: "read", path: path)
    } catch { throw .unreadable(path: path, error) }
    if count == 0 {
      throw .truncated(
        path: path, expected: offset + UInt64(buffer.count), actual: offset + UInt64(done))
    }
    done += count
  }
}
