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

/// A chunk as it is stored: the magic of its compression, the block's checksum (CRC-32C, 4 bytes),
/// and the block, which is one of lz4, or a frame of zstd without a checksum of its own.
///
/// zstd's own checksum (XXH64 of the content) took a tenth to a third of the time of a chunk of 16
/// KiB, and lz4's frames need two buffers for each thread that reads them. CRC-32C of the block,
/// which is short, takes hardly any: the processor has an instruction for it.
private enum Block: UInt32 {
  case lz4 = 0x0034_5a4c  // `LZ4` and zero
  case zstd = 0x0054_535a  // `ZST` and zero

  static let offset = 8

  static func content(
    of chunk: UnsafeRawBufferPointer
  ) throws(CompressionError) -> (Block, UnsafeRawBufferPointer)? {
    guard chunk.count > offset,
      let kind = Block(rawValue: UInt32(littleEndian: chunk.loadUnaligned(as: UInt32.self)))
    else { return nil }
    let block = UnsafeRawBufferPointer(rebasing: chunk[offset...])
    let checksum = UInt32(littleEndian: chunk.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
    guard checksum == CRC32.castagnoli.checksum(of: block) else {
      throw CompressionError(description: "a wrong checksum")
    }
    return (kind, block)
  }
}

/// Compresses chunks, each on its own, into blocks. One thread owns it.
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
      return context
    } catch {
      ZSTD_freeCCtx(context)
      throw error
    }
  }

  deinit { ZSTD_freeCCtx(context) }

  /// Returns the greatest size of a compressed chunk of `length` bytes.
  static func bound(_ length: Int) -> Int {
    Block.offset + max(ZSTD_compressBound(length), Int(LZ4_compressBound(Int32(length))))
  }

  func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    let room = UnsafeMutableRawBufferPointer(rebasing: target[Block.offset...])
    let kind = context == nil ? Block.lz4 : .zstd
    let size = try compressBlock(source, into: room)
    let block = UnsafeRawBufferPointer(rebasing: room[..<size])
    target.storeBytes(of: kind.rawValue.littleEndian, as: UInt32.self)
    target.storeBytes(
      of: CRC32.castagnoli.checksum(of: block).littleEndian, toByteOffset: 4, as: UInt32.self)
    return Block.offset + size
  }

  private func compressBlock(
    _ source: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    if let context {
      return try CompressionError.zstd(
        ZSTD_compress2(context, room.baseAddress, room.count, source.baseAddress, source.count))
    }
    let size = LZ4_compress_default(
      source.baseAddress, room.baseAddress, Int32(source.count), Int32(room.count))
    guard size > 0 else { throw CompressionError(description: "lz4: no room for a chunk") }
    return Int(size)
  }
}

/// Decompresses and verifies chunks. One thread at a time uses it.
final class ChunkDecompressor {
  /// nil until a chunk of zstd is read: lz4 needs none.
  private var context: OpaquePointer?

  deinit { ZSTD_freeDCtx(context) }

  /// Decompresses one chunk. It fails unless the chunk has exactly `target.count` bytes and its
  /// checksum is right. Earlier images have frames of zstd with their own checksum.
  func decompress(
    _ chunk: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) {
    let (kind, block) = try Block.content(of: chunk) ?? (.zstd, chunk)
    let size: Int
    switch kind {
    case .lz4:
      size = Int(
        LZ4_decompress_safe(
          block.baseAddress, target.baseAddress, Int32(block.count), Int32(target.count)))
      if size < 0 { throw CompressionError(description: "lz4: a damaged block") }
    case .zstd:
      context = context ?? ZSTD_createDCtx()
      guard let context else {
        throw CompressionError(description: "no memory for a decompressor", isShortage: true)
      }
      size = try CompressionError.zstd(
        ZSTD_decompressDCtx(
          context, target.baseAddress, target.count, block.baseAddress, block.count))
    }
    if size != target.count {
      throw CompressionError(description: "\(size) bytes instead of \(target.count)")
    }
  }
}
