import CLz4
import CZstd

/// How the chunks of an image are compressed.
public enum Compression: Hashable, Sendable {
  /// - Parameter level: −7 to 19.
  case zstd(level: Int32)
  /// Chunks are decompressed in half of zstd's time, and are some 1.7 times as long.
  case lz4

  /// The compression of pages that are needed soon. At this level zstd stores data nearly
  /// unchanged, and reading it back costs one copy.
  static let nearlyNone = Compression.zstd(level: -1000)
}

/// A failure of zstd or lz4, as the library describes it.
struct CompressionError: Error, CustomStringConvertible {
  let description: String

  /// Returns the size that a call of zstd returned, or throws its error.
  static func zstd(_ code: Int) throws(CompressionError) -> Int {
    if ZSTD_isError(code) != 0 {
      throw CompressionError(description: String(cString: ZSTD_getErrorName(code)))
    }
    return code
  }

  /// Returns the size that a call of lz4 returned, or throws its error.
  @discardableResult
  static func lz4(_ code: Int) throws(CompressionError) -> Int {
    if LZ4F_isError(code) != 0 {
      throw CompressionError(description: String(cString: LZ4F_getErrorName(code)))
    }
    return code
  }
}

/// Compresses chunks into independent frames: of zstd, each with its checksum (XXH64, 32 bits of
/// it), or of lz4, with a checksum of each block as it is stored (XXH32). One thread owns it.
struct ChunkCompressor: ~Copyable {
  private enum Context {
    case zstd(OpaquePointer)
    case lz4(OpaquePointer)
  }
  private let context: Context

  init(_ compression: Compression) throws(CompressionError) {
    switch compression {
    case .zstd(let level): context = .zstd(try Self.makeZstd(level: level))
    case .lz4:
      var made: OpaquePointer?
      try CompressionError.lz4(LZ4F_createCompressionContext(&made, UInt32(LZ4F_VERSION)))
      guard let made else { throw CompressionError(description: "no memory for a compressor") }
      context = .lz4(made)
    }
  }

  private static func makeZstd(level: Int32) throws(CompressionError) -> OpaquePointer {
    guard let context = ZSTD_createCCtx() else {
      throw CompressionError(description: "no memory for a compressor")
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

  deinit {
    switch context {
    case .zstd(let context): ZSTD_freeCCtx(context)
    case .lz4(let context): LZ4F_freeCompressionContext(context)
    }
  }

  /// Returns the greatest size of a frame for `length` bytes.
  static func bound(_ length: Int) -> Int {
    var preferences = lz4Preferences(length)
    return max(ZSTD_compressBound(length), LZ4F_compressFrameBound(length, &preferences))
  }

  func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    switch context {
    case .zstd(let context):
      try CompressionError.zstd(
        ZSTD_compress2(
          context, target.baseAddress, target.count, source.baseAddress, source.count))
    case .lz4(let context): try Self.compress(source, into: target, context)
    }
  }

  private static func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer,
    _ context: OpaquePointer
  ) throws(CompressionError) -> Int {
    guard let start = target.baseAddress else { return 0 }
    var preferences = lz4Preferences(source.count)
    var size = try CompressionError.lz4(
      LZ4F_compressBegin(context, start, target.count, &preferences))
    size += try CompressionError.lz4(
      LZ4F_compressUpdate(
        context, start + size, target.count - size, source.baseAddress, source.count, nil))
    size += try CompressionError.lz4(
      LZ4F_compressEnd(context, start + size, target.count - size, nil))
    return size
  }

  private static func lz4Preferences(_ length: Int) -> LZ4F_preferences_t {
    var preferences = LZ4F_preferences_t()
    // With one block, the frame is decompressed to where its pages are wanted.
    preferences.frameInfo.blockSizeID = length <= 64 << 10 ? LZ4F_max64KB : LZ4F_max256KB
    preferences.frameInfo.blockMode = LZ4F_blockIndependent
    preferences.frameInfo.blockChecksumFlag = LZ4F_blockChecksumEnabled
    preferences.autoFlush = 1
    return preferences
  }
}

/// Decompresses and verifies chunks. One thread owns it.
struct ChunkDecompressor: ~Copyable {
  private let zstd: OpaquePointer
  private let lz4: OpaquePointer
  /// The first four bytes of a frame of lz4, as a number.
  private static let lz4Magic: UInt32 = 0x184D_2204

  init() throws(CompressionError) {
    var made: OpaquePointer?
    try CompressionError.lz4(LZ4F_createDecompressionContext(&made, UInt32(LZ4F_VERSION)))
    guard let made else { throw CompressionError(description: "no memory for a decompressor") }
    guard let context = ZSTD_createDCtx() else {
      LZ4F_freeDecompressionContext(made)
      throw CompressionError(description: "no memory for a decompressor")
    }
    (zstd, lz4) = (context, made)
  }

  deinit {
    ZSTD_freeDCtx(zstd)
    LZ4F_freeDecompressionContext(lz4)
  }

  static func isLz4(_ frame: UnsafeRawBufferPointer) -> Bool {
    frame.count >= 4 && UInt32(littleEndian: frame.loadUnaligned(as: UInt32.self)) == lz4Magic
  }

  /// Decompresses one frame to the start of `target`. It fails unless the frame has exactly
  /// `length` bytes and its checksum is right. What is behind them in `target` may change: with
  /// room for a block of lz4 (64 KiB, or 256 KiB for longer frames), lz4 needs no copy.
  func decompress(
    _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, length: Int
  ) throws(CompressionError) {
    let size =
      Self.isLz4(frame)
      ? try decompressLz4(frame, into: target)
      : try CompressionError.zstd(
        ZSTD_decompressDCtx(zstd, target.baseAddress, length, frame.baseAddress, frame.count))
    if size != length {
      throw CompressionError(description: "\(size) bytes instead of \(length)")
    }
  }

  private func decompressLz4(
    _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    var (size, used) = (target.count, frame.count)
    let code = LZ4F_decompress(lz4, target.baseAddress, &size, frame.baseAddress, &used, nil)
    if code == 0, used == frame.count { return size }
    // Otherwise the next frame would be taken for the end of this one.
    LZ4F_resetDecompressionContext(lz4)
    try CompressionError.lz4(code)
    throw CompressionError(description: "a frame of lz4 has another length")
  }
}
