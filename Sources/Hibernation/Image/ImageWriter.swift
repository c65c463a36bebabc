import CLinux
import Checksum
import Glibc
import Linux
import Synchronization

/// Writes an image under a temporary name. Several threads may append chunks at the same time.
/// `commit` completes the file and gives it its name. A writer that is dropped before `commit`
/// leaves no file.
final class ImageWriter: Sendable {
  let path: String
  let id = ImageID.random()
  private let partialPath: String
  private let file: Descriptor
  /// The key, if the image is to be encrypted.
  private let seal: Seal?
  private let state: Mutex<State>

  /// The number of bytes after which a write to the disk is started, so that the wait at the end is
  /// short.
  private static let writebackStep: UInt64 = 4 << 20

  private struct State {
    var end = UInt64(ImageLayout.headerLength)
    /// The offset up to which writing to the disk has been started.
    var started: UInt64 = 0
    var chunks: [ImageChunk] = []
    /// True once the file has its name, or was discarded.
    var isOver = false
  }

  /// Returns the name of the file until it is complete.
  static func partialPath(of path: String) -> String { path + ".partial" }

  init(path: String, seal: Seal? = nil) throws(SystemCallError) {
    self.path = path
    self.seal = seal
    partialPath = Self.partialPath(of: path)
    file = try ImageFile.create(partialPath)
    state = Mutex(State())
  }

  deinit { discard() }

  /// Removes the file: none is left when this returns. `deinit` would be too late: the lanes
  /// release the writer a moment after they have reported, and the next attempt's file has the same
  /// name.
  func discard() {
    let wasOver = state.withLock { state in
      defer { state.isOver = true }
      return state.isOver
    }
    if !wasOver { discardFile(partialPath) }
  }

  /// Appends one compressed chunk, and sets `chunk`'s offset and stored length.
  func append(_ data: UnsafeRawBufferPointer, _ chunk: ImageChunk) throws(SystemCallError) {
    let length = data.count + (seal == nil ? 0 : Seal.overhead)
    let offset = state.withLock { state in
      defer { state.end += UInt64(length) }
      return state.end
    }
    if let seal {
      try write(seal.close(data, .chunk(chunk), at: offset), at: offset)
    } else {
      try write(data, at: offset)
    }
    var chunk = chunk
    chunk.offset = offset
    chunk.storedLength = UInt32(length)
    state.withLock { [chunk] in $0.chunks.append(chunk) }
    startWriteback()
  }

  /// Starts the write to disk of what has been appended, a few megabytes at a time.
  private func startWriteback() {
    let unwritten = state.withLock { state -> (UInt64, UInt64)? in
      guard state.end - state.started >= Self.writebackStep else { return nil }
      defer { state.started = state.end }
      return (state.started, state.end - state.started)
    }
    // `commit` notices errors.
    if let unwritten {
      _ = clinux_start_writeback(file.raw, Int64(unwritten.0), Int64(unwritten.1))
    }
  }

  /// Commit A: writes index and header, and renames the file. From here on the memory can be
  /// written back from the file.
  ///
  /// - Parameter durability: `synced` returns when the disk has confirmed the file and its name. A
  ///   later write error can't affect the image any more.
  /// - Parameter replaces: true if the file replaces an image that counts until then.
  /// - Parameter standstill: checked before the file gets its name.
  /// - Throws: if it throws, no file has the image's name, or the replaced one still has it.
  func commit(
    processes: [ImageProcess], mappings: [ImageMapping] = [], base: BaseReference? = nil,
    durability: ImageDurability = .synced, replaces: Bool = false, standstill: Standstill? = nil
  ) throws -> ImageMark {
    let (end, chunks) = state.withLock { ($0.end, $0.chunks) }
    var index = Self.index(
      processes: processes, chunks: chunks, mappings: mappings, id: id, base: base)
    let stored = index.count + (seal == nil ? 0 : Seal.overhead)
    let length = end + UInt64(stored)
    if let seal {
      let header = header(indexOffset: end, indexLength: stored, checksum: 0, fileLength: length)
      index = try Self.close(index, seal: seal, header: header, at: end)
    }
    try write(index, at: end)
    let checksum = CRC32.castagnoli.checksum(of: index)
    try write(
      header(indexOffset: end, indexLength: stored, checksum: checksum, fileLength: length), at: 0)
    if durability == .synced {
      try file.syncData(partialPath)
      FaultPoint.synced.pass()
    }
    try standstill?.check()
    try renameFile(partialPath, to: path)
    state.withLock { $0.isOver = true }
    if durability == .synced {
      do throws(SystemCallError) { try ImageFile.syncDirectory(of: path) } catch {
        // The replaced image can't be restored. The new one is on the disk, and its name matters
        // only until the machine stops.
        if replaces { return ImageMark(id: id, indexChecksum: checksum, fileLength: length) }
        discardFile(path)
        throw error
      }
    }
    return ImageMark(id: id, indexChecksum: checksum, fileLength: length)
  }

  /// Records that all pages have been freed and every thread is at rest with its own registers.
  func markAtRest() throws(SystemCallError) {
    var writer = ByteWriter()
    writer.append(ImageProgress.atRest.rawValue)
    try write(writer.bytes, at: UInt64(ImageLayout.progressOffset))
  }

  /// Starts to write the pages that aren't on the disk yet, so that the kernel can drop them when
  /// it needs memory. `dropsCache` also drops the pages that are on the disk.
  func startWriteback(dropsCache: Bool) {
    _ = clinux_start_writeback(file.raw, 0, 0)
    if dropsCache { ImageFile.dropFromCache(file) }
  }

  private func write(_ bytes: [UInt8], at offset: UInt64) throws(SystemCallError) {
    var failure: SystemCallError?
    bytes.withUnsafeBytes { buffer in
      do throws(SystemCallError) { try write(buffer, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  private func write(
    _ data: UnsafeRawBufferPointer, at offset: UInt64
  ) throws(SystemCallError) {
    var done = 0
    while done < data.count {
      let remainder = UnsafeRawBufferPointer(rebasing: data[done...])
      done += try file.write(remainder, at: Int64(offset) + Int64(done), path: partialPath)
    }
  }

  private static func close(
    _ index: [UInt8], seal: Seal, header: [UInt8], at offset: UInt64
  ) throws(SystemCallError) -> [UInt8] {
    let result = index.withUnsafeBytes { buffer in
      Result { () throws(SystemCallError) in
        try seal.close(buffer, .index(header: header), at: offset)
      }
    }
    return try result.get()
  }

  private func header(
    indexOffset: UInt64, indexLength: Int, checksum: UInt32, fileLength: UInt64
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(ImageLayout.magic)
    let flags = ImageLayout.blocks | (seal == nil ? 0 : ImageLayout.sealed)
    writer.append(ImageLayout.version | flags | ImageMachine.current.bits)
    writer.append(checksum)
    writer.append(fileLength)
    writer.append(indexOffset)
    writer.append(UInt64(indexLength))
    writer.append(seal?.identifier ?? [UInt8](repeating: 0, count: Seal.identifierLength))
    writer.append(CRC32.castagnoli.checksum(of: writer.bytes))
    writer.append(ImageProgress.committed.rawValue)
    return writer.bytes
  }

  private static func index(
    processes: [ImageProcess], chunks: [ImageChunk], mappings: [ImageMapping], id: ImageID,
    base: BaseReference?
  ) -> [UInt8] {
    var writer = ByteWriter()
    var sections = [
      (ImageLayout.Section.processes, UInt32(0), processSection(processes)),
      (ImageLayout.Section.chunks, 0, chunkSection(chunks)),
      (ImageLayout.Section.identity, ImageLayout.mayBeSkipped, id.section),
    ]
    if let base { sections.append((ImageLayout.Section.base, 0, base.section)) }
    if !mappings.isEmpty {
      let payload = mappingSection(mappings)
      sections.append((ImageLayout.Section.mappings, ImageLayout.mayBeSkipped, payload))
    }
    for (type, flags, payload) in sections {
      writer.append(type)
      writer.append(flags)
      writer.append(UInt64(payload.count))
      writer.append(payload)
    }
    return writer.bytes
  }

  private static func mappingSection(_ mappings: [ImageMapping]) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(UInt32(mappings.count))
    for mapping in mappings {
      writer.append(mapping.process)
      writer.append(mapping.range.address)
      writer.append(mapping.range.length)
    }
    return writer.bytes
  }

  private static func processSection(_ processes: [ImageProcess]) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(UInt32(processes.count))
    for process in processes {
      writer.append(process.pid)
      writer.append(process.startTime)
      writer.append(process.scratchAddress)
      writer.append(UInt32(process.threads.count))
      for thread in process.threads {
        writer.append(thread.tid)
        writer.append(UInt32(thread.isWaiting ? 1 : 0))
        writer.append(thread.signalMask)
        writer.append(UInt32(thread.registers.count))
        for word in thread.registers { writer.append(word) }
      }
    }
    return writer.bytes
  }

  private static func chunkSection(_ chunks: [ImageChunk]) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(UInt32(chunks.count))
    for chunk in chunks {
      writer.append(chunk.process)
      writer.append(chunk.flags)
      writer.append(chunk.offset)
      writer.append(chunk.storedLength)
      writer.append(UInt32(chunk.ranges.count))
      for range in chunk.ranges {
        writer.append(range.address)
        writer.append(range.length)
      }
    }
    return writer.bytes
  }
}
