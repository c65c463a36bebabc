import CZstd

/// A failure of zstd, as the library describes it.
struct ZstdError: Error, CustomStringConvertible {
  let description: String

  /// Returns the size that a zstd call returned, or throws its error.
  static func check(_ code: Int) throws(ZstdError) -> Int {
    if ZSTD_isError(code) != 0 {
      throw ZstdError(description: String(cString: ZSTD_getErrorName(code)))
    }
    return code
  }
}

/// Compresses chunks into independent frames, each with its checksum (XXH64, 32 bits of it). One
/// thread owns it.
struct ChunkCompressor: ~Copyable {
  private let context: OpaquePointer

  init(level: Int32) throws(ZstdError) { context = try Self.makeContext(level: level) }

  private static func makeContext(level: Int32) throws(ZstdError) -> OpaquePointer {
    guard let context = ZSTD_createCCtx() else {
      throw ZstdError(description: "no memory for a compressor")
    }
    do throws(ZstdError) {
      _ = try ZstdError.check(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level))
      _ = try ZstdError.check(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1))
      return context
    } catch {
      ZSTD_freeCCtx(context)
      throw error
    }
  }

  deinit { ZSTD_freeCCtx(context) }

  /// Returns the greatest size of a frame for `length` bytes.
  static func bound(_ length: Int) -> Int { ZSTD_compressBound(length) }

  func compress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(ZstdError) -> Int {
    try ZstdError.check(
      ZSTD_compress2(
        context, target.baseAddress, target.count, source.baseAddress, source.count))
  }
}

/// Decompresses and verifies chunks. One thread owns it.
struct ChunkDecompressor: ~Copyable {
  private let context: OpaquePointer

  init() throws(ZstdError) {
    guard let context = ZSTD_createDCtx() else {
      throw ZstdError(description: "no memory for a decompressor")
    }
    self.context = context
  }

  deinit { ZSTD_freeDCtx(context) }

  /// Decompresses one frame. It fails unless the frame has exactly `target.count` bytes and their
  /// checksum is right.
  func decompress(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(ZstdError) {
    let size = try ZstdError.check(
      ZSTD_decompressDCtx(
        context, target.baseAddress, target.count, source.baseAddress, source.count))
    if size != target.count {
      throw ZstdError(description: "\(size) bytes instead of \(target.count)")
    }
  }
}
