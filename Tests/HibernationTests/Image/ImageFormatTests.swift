import Checksum
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The image format by itself (docs/image-format.md).
@Suite(.serialized)
struct ImageFormatTests {
  @Test func `A written image is read again unchanged`() throws {
    let path = try Self.image(chunks: 3)
    let image = try ImageReader(path: path)
    #expect(image.progress == .committed)
    #expect(image.processes.map(\.pid) == [17, 18])
    #expect(image.processes[0].threads.map(\.registers) == [[1, 2, UInt64.max]])
    #expect(image.processes[1].scratchAddress == 0x7000)
    #expect(image.chunks.map(\.process) == [0, 1, 0])
    #expect(image.dataLength == 3 * 2 * pageSize)
    var contents: [[UInt8]] = []
    try image.forEachChunk { _, pages in contents.append(Array(pages)) }
    #expect(contents == (0..<3).map { Self.pages(seed: UInt64($0)) })
  }

  @Test func `Only the owner can read an image, and no partial file is left`() throws {
    let path = try Self.image(chunks: 1)
    var status = stat()
    #expect(stat(path, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o600)
    #expect(access(path + ".partial", F_OK) != 0)
  }

  @Test func `A discarded writer leaves no file`() throws {
    let path = Fixture.imagePath()
    _ = try ImageWriter(path: path)
    #expect(access(path + ".partial", F_OK) != 0)
    #expect(access(path, F_OK) != 0)
  }

  @Test func `The progress that a worker is at rest is written in place`() throws {
    let path = Fixture.imagePath()
    let writer = try ImageWriter(path: path)
    _ = try writer.commit(processes: [])
    try writer.markAtRest()
    #expect(try ImageReader(path: path).progress == .atRest)
  }

  @Test(
    "An unknown section is skipped if it may be, and is an error otherwise",
    arguments: [true, false])
  func unknownSection(mayBeSkipped: Bool) throws {
    var file = try readFile(try Self.image(chunks: 1))
    let header = Header(file)
    var section = ByteWriter()
    section.append(UInt32(99))
    section.append(UInt32(mayBeSkipped ? 1 : 0))
    section.append(UInt64(3))
    section.append([1, 2, 3])
    let index = Array(file[header.indexOffset...]) + section.bytes
    file = Array(file[..<header.indexOffset]) + index
    Header.seal(&file, index: index, indexOffset: header.indexOffset)
    let path = Fixture.imagePath()
    try Self.write(file, to: path)
    if mayBeSkipped {
      #expect(try ImageReader(path: path).chunks.count == 1)
    } else {
      let error = #expect(throws: ImageError.self) { try ImageReader(path: path) }
      #expect(error?.description.contains("damaged") == true)
    }
  }

  @Test func `A later version is an error that names the version`() throws {
    var file = try readFile(try Self.image(chunks: 1))
    file[8] = 2
    let path = Fixture.imagePath()
    try Self.write(file, to: path)
    let error = #expect(throws: ImageError.self) { try ImageReader(path: path) }
    #expect(error?.description.hasSuffix("has format version 2, this Dormouse reads 1") == true)
  }

  @Test func `An image of an earlier Dormouse, with frames of zstd, is read`() throws {
    let path = try Self.image(chunks: 3)
    let right = try Self.describe(path)
    var file = try readFile(path)
    let start = Header(file).indexOffset
    file[10] &= ~2
    // A block behind its head is such a frame, without the checksum that is optional in it.
    for chunk in try ImageReader(path: path).chunks {
      let frame = Int(chunk.offset)..<Int(chunk.offset) + Int(chunk.storedLength)
      file.replaceSubrange(frame, with: file[frame].dropFirst(8) + Self.skippableFrame)
    }
    Header.seal(&file, index: Array(file[start...]), indexOffset: start)
    try Self.write(file, to: path)
    #expect(try Self.describe(path) == right)
    try ImageReader(path: path).verify()
  }

  /// zstd skips these 8 bytes (RFC 8878, section 3.1.2).
  private static let skippableFrame: [UInt8] = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]

  @Test func `Every truncation is detected`() throws {
    let file = try readFile(try Self.image(chunks: 2))
    let path = Fixture.imagePath()
    for length in stride(from: 0, to: file.count, by: 61) {
      try Self.write(Array(file[..<length]), to: path)
      #expect(throws: ImageError.self, "\(length) bytes") { try ImageReader(path: path).verify() }
    }
  }

  @Test func `No flipped bit changes the pages, threads or ranges that are read`() throws {
    let file = try readFile(try Self.image(chunks: 2))
    let path = Fixture.imagePath()
    try Self.write(file, to: path)
    let right = try Self.describe(path)
    var random = TestRandom(seed: 2026)
    // These are every bit of the header, and some of the other bits.
    let positions =
      Array(0..<(64 * 8))
      + (0..<300).map { _ in
        Int.random(in: (64 * 8)..<(file.count * 8), using: &random)
      }
    var noticed = 0
    for position in positions {
      var damaged = file
      damaged[position / 8] ^= 1 << UInt8(position % 8)
      try Self.write(damaged, to: path)
      do {
        #expect(try Self.describe(path) == right, "bit \(position)")
      } catch is ImageError { noticed += 1 }
    }
    #expect(noticed == positions.count)
  }

  @Test func `Damage with right checksums is an error, or gives a consistent image`() throws {
    let files = try [
      readFile(Self.image(chunks: 2)), readFile(Self.image(chunks: 3, hasMappings: true)),
    ]
    let path = Fixture.imagePath()
    var random = TestRandom(seed: 47)
    var refused = 0
    for round in 0..<600 {
      var file = files[round % 2]
      let start = Header(file).indexOffset
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        Self.mutate(&file, from: start, using: &random)
      }
      Header.seal(&file, index: Array(file[start...]), indexOffset: start)
      try Self.write(file, to: path)
      do {
        let image = try ImageReader(path: path)
        Self.expectWhole(image)
        try image.verify()
      } catch {
        #expect(!error.description.isEmpty)
        refused += 1
      }
    }
    #expect(refused > 300)
  }

  @Test("Huge counts and lengths cause no large allocation and no read beyond the file")
  func hugeCounts() throws {
    let file = try readFile(Self.image(chunks: 2, hasMappings: true))
    let start = Header(file).indexOffset
    let path = Fixture.imagePath()
    for offset in start..<(file.count - 8) {
      for value: UInt64 in [0xffff_ffff, 0x7fff_ffff, .max, 1 << 63] {
        var damaged = file
        Header.put(value, value > 0xffff_ffff ? 8 : 4, at: offset, in: &damaged)
        Header.seal(&damaged, index: Array(damaged[start...]), indexOffset: start)
        try Self.write(damaged, to: path)
        do { Self.expectWhole(try ImageReader(path: path)) } catch {
          #expect(!error.description.isEmpty)
        }
      }
    }
  }

  // MARK: helpers

  /// Makes one kind of damage to a file.
  private static func mutate(
    _ file: inout [UInt8], from start: Int, using random: inout TestRandom
  ) {
    guard file.count > start else { return }
    let offset = Int.random(in: start..<file.count, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: file[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: file[offset] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
    case 2: file.removeLast(file.count - offset)
    default:
      let length = min(Int.random(in: 1...64, using: &random), file.count - offset)
      file.insert(contentsOf: Array(file[offset..<(offset + length)]), at: offset)
    }
  }

  /// Checks the properties on which every user of an image relies.
  private static func expectWhole(_ image: ImageReader) {
    let ranges =
      image.chunks.flatMap { chunk in chunk.ranges.map { (chunk.process, $0) } }
      + image.mappings.map { ($0.process, $0.range) }
    #expect(
      ranges.allSatisfy { process, range in
        image.processes.indices.contains(Int(process)) && range.length > 0
          && range.address % pageSize == 0 && range.length % pageSize == 0
          && !range.address.addingReportingOverflow(range.length).overflow
      })
    #expect(image.chunks.allSatisfy { $0.offset + UInt64($0.storedLength) <= image.fileLength })
  }

  /// Returns the data of an image that a resume would use.
  private static func describe(_ path: String) throws -> [String] {
    let image = try ImageReader(path: path)
    var text = ["\(image.progress) \(image.processes)"]
    try image.forEachChunk { chunk, pages in
      text.append("\(chunk.process) \(chunk.ranges) \(CRC32.castagnoli.checksum(of: pages))")
    }
    return text
  }

  static func pages(seed: UInt64) -> [UInt8] {
    var random = TestRandom(seed: seed)
    return (0..<Int(2 * pageSize)).map {
      $0 % 64 < 8 ? UInt8(truncatingIfNeeded: random.next()) : 7
    }
  }

  static func image(
    chunks: Int, sealed: Bool = false, seeds: [UInt64]? = nil, hasMappings: Bool = false,
    compression: Compression = .zstd(level: 1)
  ) throws -> String {
    let path = Fixture.imagePath()
    let writer = try ImageWriter(path: path, seal: sealed ? Seal.new(for: path) : nil)
    let compressor = try ChunkCompressor(compression)
    let room = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ChunkCompressor.bound(ImageLayout.chunkLength), alignment: 16)
    defer { room.deallocate() }
    for number in 0..<chunks {
      let pages = pages(seed: seeds?[number] ?? UInt64(number))
      let size = try pages.withUnsafeBytes { try compressor.compress($0, into: room) }
      let start = 0x10000 * UInt64(number + 1)
      try writer.append(
        UnsafeRawBufferPointer(rebasing: room[..<size]),
        ImageChunk(
          process: UInt32(number % 2), writable: true, offset: 0, storedLength: 0,
          ranges: [
            PageRange(address: start, length: pageSize),
            PageRange(address: start + 4 * pageSize, length: pageSize),
          ]))
    }
    let thread = ImageProcess.TracedThreadState(
      tid: 17, isWaiting: true, signalMask: 5, registers: [1, 2, UInt64.max])
    let mapping = ImageMapping(
      process: 1, range: PageRange(address: 0x10000, length: 8 * pageSize))
    _ = try writer.commit(
      processes: [
        ImageProcess(pid: 17, startTime: 170, scratchAddress: 0x6000, threads: [thread]),
        ImageProcess(pid: 18, startTime: 180, scratchAddress: 0x7000, threads: []),
      ], mappings: hasMappings ? [mapping] : [])
    return path
  }

  static func write(_ bytes: [UInt8], to path: String) throws {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
    try bytes.withUnsafeBytes { try file.writeAll($0) }
  }

  /// The header's fields as docs/image-format.md has them, independently of the reader.
  struct Header {
    let indexOffset: Int

    init(_ file: [UInt8]) {
      indexOffset = Int(file[24..<32].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }

    static func seal(_ file: inout [UInt8], index: [UInt8], indexOffset: Int) {
      put(UInt64(CRC32.castagnoli.checksum(of: index)), 4, at: 12, in: &file)
      put(UInt64(file.count), 8, at: 16, in: &file)
      put(UInt64(index.count), 8, at: 32, in: &file)
      put(UInt64(CRC32.castagnoli.checksum(of: file[..<56])), 4, at: 56, in: &file)
    }

    static func put(_ value: UInt64, _ bytes: Int, at offset: Int, in file: inout [UInt8]) {
      for byte in 0..<bytes {
        file[offset + byte] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(byte)))
      }
    }
  }
}
