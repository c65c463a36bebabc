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
    let buffer = ChunkBuffer()
    for step in steps.prefix(chunks.count) {
      let pages = try buffer.load(step, of: self)
      body(step.chunk, UnsafeRawBufferPointer(start: pages, count: step.length))
    }
  }
}
