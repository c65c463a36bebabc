import CLinux
import Checksum
import Glibc
import Linux

@testable import Hibernation

extension FuzzTarget {
  /// Reads the input as an image, unchanged and with corrected checksums. The reader must either
  /// report an error or give a consistent image.
  static let image = FuzzTarget(
    read: { file in
      _ = key
      tryToRead(file)
      guard file.count >= ImageLayout.headerLength else { return }
      var file = file
      reseal(&file)
      tryToRead(file)
    }, seeds: imageSeeds)
}

/// The key of sealed images, made once. Without a keyring there are no sealed images.
private let key: Void = { _ = try? BootKey.forSealing(in: "/proc/self/fd") }()

private let scratch: (descriptor: Int32, path: String) = {
  var path = Array("/dev/shm/fuzz-image-XXXXXX".utf8CString)
  let descriptor = mkstemp(&path)
  precondition(descriptor >= 0, "can't make a file in /dev/shm")
  unlink(path)
  return (descriptor, "/proc/self/fd/\(descriptor)")
}()

private func tryToRead(_ file: [UInt8]) {
  ftruncate(scratch.descriptor, 0)
  guard pwrite(scratch.descriptor, file, file.count, 0) == file.count else { return }
  do throws(ImageError) {
    let image = try ImageReader(path: scratch.path)
    check(image)
    try image.verify()
  } catch { precondition(!error.description.isEmpty) }
}

/// Checks the properties that all users of an image rely on.
private func check(_ image: ImageReader) {
  for chunk in image.chunks {
    precondition(image.processes.indices.contains(Int(chunk.process)))
    precondition(chunk.length > 0 && chunk.length <= ImageLayout.chunkLength)
    precondition(chunk.offset + UInt64(chunk.storedLength) <= image.fileLength)
    for range in chunk.ranges {
      precondition(range.length > 0 && range.length % pageSize == 0)
      precondition(range.address % pageSize == 0)
      precondition(!range.address.addingReportingOverflow(range.length).overflow)
    }
  }
  for mapping in image.mappings {
    precondition(image.processes.indices.contains(Int(mapping.process)))
    precondition(mapping.range.address % pageSize == 0 && mapping.range.length % pageSize == 0)
    precondition(!mapping.range.address.addingReportingOverflow(mapping.range.length).overflow)
  }
  for process in image.processes {
    for thread in process.threads { _ = clinux_registers(storedWords: thread.registers) }
  }
  _ = image.dataLength
}

/// Corrects the length, the checksums and the index's offset, so that the reader reads further.
private func reseal(_ file: inout [UInt8]) {
  file.replaceSubrange(0..<8, with: ImageLayout.magic)
  file[8] = 1
  (file[9], file[11]) = (0, 0)
  file[10] &= 1
  let room = UInt64(file.count - ImageLayout.headerLength)
  var start = number(file, 24, 8)
  if start < UInt64(ImageLayout.headerLength) || start > UInt64(file.count) {
    start = UInt64(ImageLayout.headerLength) + (room == 0 ? 0 : start % room)
  }
  put(UInt64(file.count), 8, 16, &file)
  put(start, 8, 24, &file)
  put(UInt64(file.count) - start, 8, 32, &file)
  if file[10] == 1, file.count - Int(start) >= Seal.overhead {
    for index in (file.count - Seal.overhead)..<file.count { file[index] = 0 }
  }
  resealBlocks(&file, before: Int(start))
  put(UInt64(CRC32.castagnoli.checksum(of: file[Int(start)...])), 4, 12, &file)
  put(UInt64(CRC32.castagnoli.checksum(of: file[..<56])), 4, 56, &file)
  if ImageProgress(rawValue: UInt32(truncatingIfNeeded: number(file, 60, 4))) == nil {
    put(1, 4, 60, &file)
  }
}

/// Corrects the checksum of each block: it ends where the next one, or the index, begins.
private func resealBlocks(_ file: inout [UInt8], before end: Int) {
  var end = end
  for start in stride(from: end - 8, through: ImageLayout.headerLength, by: -1) {
    guard file[start + 3] == 0,
      ["LZ4", "ZST"].contains(where: { file[start...].starts(with: $0.utf8) })
    else { continue }
    put(UInt64(CRC32.castagnoli.checksum(of: file[(start + 8)..<end])), 4, start + 4, &file)
    end = start
  }
}

private func imageSeeds() throws -> [String: [UInt8]] {
  _ = key
  var seeds: [String: [UInt8]] = [:]
  for sealed in [false, true] {
    for chunks in 0..<3 {
      let path = "/dev/shm/fuzz-seed-\(getpid())"
      defer { unlink(path) }
      let writer = try ImageWriter(path: path, seal: sealed ? Seal.new(for: path) : nil)
      try append(chunks, to: writer)
      let thread = ImageProcess.TracedThreadState(
        tid: 17, isWaiting: true, signalMask: 5, registers: (0..<27).map { UInt64($0) })
      let processes = [
        ImageProcess(pid: 17, startTime: 170, scratchAddress: 0x6000, threads: [thread]),
        ImageProcess(pid: 18, startTime: 180, scratchAddress: 0x7000, threads: []),
      ]
      let mapping = ImageMapping(
        process: 0, range: PageRange(address: 0x10000, length: 4 * pageSize))
      _ = try writer.commit(processes: processes, mappings: chunks == 2 ? [mapping] : [])
      seeds["\(sealed ? "sealed" : "plain")-\(chunks)"] = try readFile(path)
    }
  }
  return seeds
}

private func append(_ count: Int, to writer: ImageWriter) throws {
  let compressor = try ChunkCompressor(count == 2 ? .lz4 : .zstd(level: 1))
  let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)
  defer { room.deallocate() }
  for number in 0..<count {
    let pages = (0..<Int(2 * pageSize)).map { UInt8(truncatingIfNeeded: $0 / 64 + number) }
    let size = try pages.withUnsafeBytes { try compressor.compress($0, into: room) }
    let start = 0x10000 * UInt64(number + 1)
    try writer.append(
      UnsafeRawBufferPointer(rebasing: room[..<size]),
      ImageChunk(
        process: UInt32(number % 2), writable: true, isBackgroundFilled: number == 1, offset: 0,
        storedLength: 0,
        ranges: [
          PageRange(address: start, length: pageSize),
          PageRange(address: start + 4 * pageSize, length: pageSize),
        ]))
  }
}
