import CZstd
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

@Suite struct CompressionTests {
  @Test(
    "A chunk of each length and compression gives back its pages",
    arguments: [Compression.lz4, .zstd(level: 1), .nearlyNone])
  func roundTrip(_ compression: Compression) throws {
    let compressor = try ChunkCompressor(compression)
    let decompressor = ChunkDecompressor()
    for length in [4096, 16384, 65536, 81920, ImageLayout.chunkLength] {
      for isRandom in [false, true] {
        let pages = Self.bytes(length, isRandom: isRandom)
        let frame = try Self.frame(of: pages, compressor)
        #expect(Array(frame[..<4]) == Array((compression == .lz4 ? "LZ4\0" : "ZST\0").utf8))
        #expect(try Self.content(of: frame, length, decompressor) == pages)
      }
    }
  }

  /// Each byte counts: those of the head, of the checksum, and of the block.
  @Test(
    "A damaged chunk is refused, and the next one is read",
    arguments: [Compression.lz4, .zstd(level: 1)])
  func damage(_ compression: Compression) throws {
    let decompressor = ChunkDecompressor()
    let pages = Self.bytes(16384, isRandom: false)
    let frame = try Self.frame(of: pages, ChunkCompressor(compression))
    for index in frame.indices {
      var damaged = frame
      damaged[index] ^= 0x41
      #expect(throws: CompressionError.self, "byte \(index)") {
        try Self.content(of: damaged, pages.count, decompressor)
      }
      #expect(try Self.content(of: frame, pages.count, decompressor) == pages)
    }
    for shorter in [1, 4, 100, frame.count - 1] {
      #expect(throws: CompressionError.self) {
        try Self.content(of: Array(frame[..<shorter]), pages.count, decompressor)
      }
    }
    for other in [pages.count - 4096, pages.count + 4096] {
      #expect(throws: CompressionError.self) {
        try Self.content(of: frame, other, decompressor)
      }
    }
    #expect(try Self.content(of: frame, pages.count, decompressor) == pages)
  }

  @Test func `A frame of zstd with its own checksum is read, as earlier images have it`() throws {
    let decompressor = ChunkDecompressor()
    let pages = Self.bytes(16384, isRandom: false)
    var frame = [UInt8](repeating: 0, count: ZSTD_compressBound(pages.count))
    let context = try #require(ZSTD_createCCtx())
    defer { ZSTD_freeCCtx(context) }
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    frame.removeLast(frame.count - ZSTD_compress2(context, &frame, frame.count, pages, pages.count))
    #expect(try Self.content(of: frame, pages.count, decompressor) == pages)
    frame[frame.count - 1] ^= 1
    #expect(throws: CompressionError.self) {
      try Self.content(of: frame, pages.count, decompressor)
    }
  }

  @Test(
    "The longest chunk that can't be compressed is read again, also if it is encrypted",
    arguments: [Compression.zstd(level: 1), .lz4], [false, true])
  func incompressible(_ compression: Compression, isSealed: Bool) throws {
    let path = Fixture.imagePath()
    defer { unlink(path) }
    let writer = try ImageWriter(path: path, seal: isSealed ? Seal.new(for: path) : nil)
    let pages = Self.bytes(ImageLayout.chunkLength, isRandom: true)
    let chunk = ImageChunk(
      process: 0, writable: true, offset: 0, storedLength: 0,
      ranges: [PageRange(address: 1 << 20, length: UInt64(pages.count))])
    try Self.frame(of: pages, ChunkCompressor(compression)).withUnsafeBytes {
      try writer.append($0, chunk)
    }
    let process = ImageProcess(pid: 17, startTime: 170, scratchAddress: 0x6000, threads: [])
    _ = try writer.commit(processes: [process])
    var content: [UInt8] = []
    try ImageReader(path: path).forEachChunk { _, pages in content += pages }
    #expect(content == pages)
  }

  /// A Dormouse that knows neither blocks nor lz4 reports an unknown version.
  @Test(
    "The version of an image says that its chunks are blocks",
    arguments: [Compression.zstd(level: 1), .lz4])
  func version(_ compression: Compression) throws {
    let path = try ImageFormatTests.image(chunks: 2, compression: compression)
    defer { unlink(path) }
    #expect(try readFile(path)[10] & 3 == 2)
    let image = try ImageReader(path: path)
    try image.verify()
    var contents: [[UInt8]] = []
    try image.forEachChunk { _, pages in contents.append(Array(pages)) }
    #expect(contents == [ImageFormatTests.pages(seed: 0), ImageFormatTests.pages(seed: 1)])
  }

  private static func bytes(_ count: Int, isRandom: Bool) -> [UInt8] {
    var random = TestRandom(seed: UInt64(count))
    return (0..<count).map {
      isRandom || $0 % 64 < 8 ? UInt8(truncatingIfNeeded: random.next()) : 7
    }
  }

  private static func frame(
    of pages: [UInt8], _ compressor: borrowing ChunkCompressor
  ) throws -> [UInt8] {
    var frame = [UInt8](repeating: 0, count: ChunkCompressor.bound(pages.count))
    let size = try frame.withUnsafeMutableBytes { target in
      try pages.withUnsafeBytes { try compressor.compress($0, into: target) }
    }
    return Array(frame[..<size])
  }

  private static func content(
    of frame: [UInt8], _ length: Int, _ decompressor: ChunkDecompressor
  ) throws -> [UInt8] {
    var target = [UInt8](repeating: 0, count: length)
    try target.withUnsafeMutableBytes { target in
      try frame.withUnsafeBytes { try decompressor.decompress($0, into: target) }
    }
    return target
  }
}
