import CLz4
import CZstd
import Checksum

/// How the chunks of an image are compressed.
public enum Compression: Hashable, Sendable {
  /// - Parameter level: −7 to 19.
  case zstd(level: Int32)
  /// Chunks are decompressed in half of zstd's time, and are some 1.8 times as long.
  case lz4

  /// The compression of pages that are needed soon. At this level zstd stores data nearly
  /// unchanged, and reading it back costs one copy.
  static let nearlyNone = Compression.zstd(level: -1000)
}

/// A failure of zstd, as the library describes it, or of lz4.
struct CompressionError: Error, CustomStringConvertible {
  let description: String
  /// True if memory was missing, which says nothing about a chunk.
  var isShortage = false

  /// Returns the size that a call of zstd returned, or throws its error.
  static func zstd(_ code: Int) throws(CompressionError) -> Int {
    if ZSTD_isError(code) != 0 {
      throw CompressionError(description: String(cString: ZSTD_getErrorName(code)))
    }
    return code
  }
}

/// A chunk that is compressed by lz4: `magic`, the block's checksum (CRC-32C, 4 bytes), and the
/// block. lz4's own frames need two buffers for each thread that reads them.
private enum Lz4Frame {
  /// The first bytes, by which a reader distinguishes it from a frame of zstd.
  static let magic: UInt32 = 0x0034_5a4c  // `LZ4` and zero.
  static let blockOffset = 8

  static func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    let room = UnsafeMutableRawBufferPointer(rebasing: target[blockOffset...])
    let size = LZ4_compress_default(
      source.baseAddress, room.baseAddress, Int32(source.count), Int32(room.count))
    guard size > 0 else { throw CompressionError(description: "lz4: no room for a chunk") }
    target.storeBytes(of: magic.littleEndian, as: UInt32.self)
    let block = UnsafeRawBufferPointer(rebasing: room[..<Int(size)])
    target.storeBytes(of: checksum(of: block).littleEndian, toByteOffset: 4, as: UInt32.self)
    return blockOffset + Int(size)
  }

  /// Returns the size of the content.
  static func decompress(
    _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    let block = UnsafeRawBufferPointer(rebasing: frame[blockOffset...])
    guard
      UInt32(littleEndian: frame.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        == checksum(of: block)
    else { throw CompressionError(description: "a wrong checksum") }
    let size = LZ4_decompress_safe(
      block.baseAddress, target.baseAddress, Int32(block.count), Int32(target.count))
    guard size >= 0 else { throw CompressionError(description: "lz4: a damaged block") }
    return Int(size)
  }

  private static func checksum(of block: UnsafeRawBufferPointer) -> UInt32 {
    CRC32.castagnoli.checksum(of: block)
  }
}

/// Compresses chunks, each on its own: into a frame of zstd with its checksum (XXH64, 32 bits of
/// it), or into an `Lz4Frame`. One thread owns it.
struct ChunkCompressor: ~Copyable {
  /// nil: lz4, which needs none.
  private let context: OpaquePointer?

  init(_ compression: Compression) throws(CompressionError) {
    switch compression {
    case .zstd(let level): context = try Self.makeContext(level: level)
    case .lz4: context = nil
    }
  }

  private static func makeContext(level: Int32) throws(CompressionError) -> OpaquePointer {
    guard let context = ZSTD_createCCtx() else {
      throw CompressionError(description: "no memory for a compressor", isShortage: true)
    }
    do throws(CompressionError) {
      _ = try CompressionError.zstd(
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level))
      _ = try CompressionError.zstd(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
      return context
    } catch {
      ZSTD_freeCCtx(context)
      throw error
    }
  }

  deinit { ZSTD_freeCCtx(context) }

  /// Returns the greatest size of a compressed chunk of `length` bytes.
  static func bound(_ length: Int) -> Int {
    max(ZSTD_compressBound(length), Lz4Frame.blockOffset + Int(LZ4_compressBound(Int32(length))))
  }

  func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    guard let context else { return try Lz4Frame.compress(source, into: target) }
    return try CompressionError.zstd(
      ZSTD_compress2(
        context, target.baseAddress, target.count, source.baseAddress, source.count))
  }
}

/// Decompresses and verifies chunks. One thread owns it.
struct ChunkDecompressor: ~Copyable {
  private let context: OpaquePointer

  init() throws(CompressionError) {
    guard let context = ZSTD_createDCtx() else {
      throw CompressionError(description: "no memory for a decompressor", isShortage: true)
    }
    self.context = context
  }

  deinit { ZSTD_freeDCtx(context) }

  static func isLz4(_ frame: UnsafeRawBufferPointer) -> Bool {
    frame.count > Lz4Frame.blockOffset
      && UInt32(littleEndian: frame.loadUnaligned(as: UInt32.self)) == Lz4Frame.magic
  }

  /// Decompresses one frame. It fails unless the frame has exactly `target.count` bytes and their
  /// checksum is right.
  func decompress(
    _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) {
    let size =
      Self.isLz4(frame)
      ? try Lz4Frame.decompress(frame, into: target)
      : try CompressionError.zstd(
        ZSTD_decompressDCtx(
          context, target.baseAddress, target.count, frame.baseAddress, frame.count))
    if size != target.count {
      throw CompressionError(description: "\(size) bytes instead of \(target.count)")
    }
  }
}
