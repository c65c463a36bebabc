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
    let decompressor = try ChunkDecompressor()
    for length in [4096, 16384, 65536, 81920, ImageLayout.chunkLength] {
      for isRandom in [false, true] {
        let pages = Self.bytes(length, isRandom: isRandom)
        let frame = try Self.frame(of: pages, compressor)
        let isLz4 = frame.withUnsafeBytes { ChunkDecompressor.isLz4($0) }
        #expect(isLz4 == (compression == .lz4))
        #expect(try Self.content(of: frame, length, decompressor) == pages)
      }
    }
  }

  /// Each byte counts: those of the head, of the checksum, and of the block.
  @Test func `A damaged chunk of lz4 is refused, and the next one is read`() throws {
    let decompressor = try ChunkDecompressor()
    let pages = Self.bytes(16384, isRandom: false)
    let frame = try Self.frame(of: pages, ChunkCompressor(.lz4))
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

  /// A Dormouse that doesn't know these frames reports an unknown version, and not a damaged image.
  @Test func `The version of an image says whether it has chunks of lz4`() throws {
    for (compression, flag) in [(Compression.zstd(level: 1), UInt8(0)), (.lz4, 2)] {
      let path = try ImageFormatTests.image(chunks: 2, compression: compression)
      defer { unlink(path) }
      #expect(try readFile(path)[10] & 3 == flag)
      let image = try ImageReader(path: path)
      try image.verify()
      var contents: [[UInt8]] = []
      try image.forEachChunk { _, pages in contents.append(Array(pages)) }
      #expect(contents == [ImageFormatTests.pages(seed: 0), ImageFormatTests.pages(seed: 1)])
    }
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
    of frame: [UInt8], _ length: Int, _ decompressor: borrowing ChunkDecompressor
  ) throws -> [UInt8] {
    var target = [UInt8](repeating: 0, count: length)
    try target.withUnsafeMutableBytes { target in
      try frame.withUnsafeBytes { try decompressor.decompress($0, into: target) }
    }
    return target
  }
}
