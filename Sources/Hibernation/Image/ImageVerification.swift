import Glibc
import Linux

extension ImageReader {
  /// Reads the whole file and its base, decompresses every chunk, and checks all checksums. It
  /// takes as long as the disk does: never call it on the event loop.
  public func verify() throws(ImageError) {
    try forEachChunk { _, _ in }
    try base?.verify()
  }

  /// Calls `body` with each chunk and its pages, in the order of the index.
  func forEachChunk(
    _ body: (ImageChunk, UnsafeRawBufferPointer) -> Void
  ) throws(ImageError) {
    let pages = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.chunkLength, alignment: Int(pageSize))
    let stored = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ImageLayout.storedLength, alignment: 64)
    defer {
      pages.deallocate()
      stored.deallocate()
    }
    let decompressor: ChunkDecompressor
    do throws(CompressionError) { decompressor = try ChunkDecompressor() } catch {
      throw .unreadable(path: path, SystemCallError("decompress", on: path, code: ENOMEM))
    }
    for chunk in chunks {
      let target = UnsafeMutableRawBufferPointer(rebasing: pages[..<chunk.length])
      try read(chunk, stored: stored, into: target, with: decompressor)
      body(chunk, UnsafeRawBufferPointer(target))
    }
  }
}
