import Glibc
import Linux

/// A buffer for one long chunk, or several short ones, and the decompressor for it. One thread at a
/// time loads chunks.
final class ChunkBuffer {
  private let decompressor = ChunkDecompressor()
  private let pages = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
  private let stored = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ImageLayout.storedLength, alignment: 64)
  private let single = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Int(pageSize), alignment: Int(pageSize))

  deinit {
    pages.deallocate()
    stored.deallocate()
    single.deallocate()
  }

  /// Loads the pages that are needed of a chunk, and returns them. They are valid until the next
  /// call.
  func load(_ step: RestoreStep, of image: ImageReader) throws(ImageError) -> UnsafeRawPointer {
    try image.load(step, stored: stored, into: pages, with: decompressor)
    return loaded
  }

  /// Loads the pages that are needed of a chunk behind others. The whole chunk must fit.
  func load(
    _ step: RestoreStep, of image: ImageReader, at offset: Int
  ) throws(ImageError) {
    let free = UnsafeMutableRawBufferPointer(rebasing: pages[offset...])
    try image.load(step, stored: stored, into: free, with: decompressor)
  }

  /// Loads a chunk as it is stored. The bytes are valid until the next call.
  func loadStored(
    _ step: RestoreStep, of image: ImageReader
  ) throws(ImageError) -> UnsafeRawBufferPointer {
    try image.readStored(step.chunk, into: stored)
  }

  /// Loads some of a chunk's pages, and compresses them. The bytes are valid until the next call.
  func compress(
    _ wanted: [PageRange], of step: RestoreStep, of image: ImageReader,
    by compression: Compression
  ) throws -> UnsafeRawBufferPointer {
    _ = try load(step, of: image)
    guard let base = pages.baseAddress else { preconditionFailure("a chunk has an address") }
    var end = 0
    for range in wanted {
      guard let offset = step.offset(of: range.address) else {
        preconditionFailure("the chunk has these pages")
      }
      memmove(base + end, base + offset, Int(range.length))
      end += Int(range.length)
    }
    let compressor = try ChunkCompressor(compression)
    let size = try compressor.compress(
      UnsafeRawBufferPointer(rebasing: pages[..<end]), into: stored)
    return UnsafeRawBufferPointer(rebasing: stored[..<size])
  }

  /// The pages of the chunk that was loaded last.
  var loaded: UnsafeRawPointer { loaded(at: 0) }

  /// The pages of the chunk that was loaded to this offset.
  func loaded(at offset: Int) -> UnsafeRawPointer {
    guard let base = pages.baseAddress else { preconditionFailure("a chunk has an address") }
    return UnsafeRawPointer(base + offset)
  }

  func keep(_ page: ArraySlice<UInt8>) -> UnsafeRawPointer {
    single.copyBytes(from: page)
    guard let base = single.baseAddress else { preconditionFailure("a page has an address") }
    return UnsafeRawPointer(base)
  }
}
