import Glibc

/// A decoded picture: 4 bytes per pixel (red, green, blue, unused), rows from the top. The talk's
/// slide show leaked such pictures.
///
/// The pixels are in pages of their own, outside of the allocator: they leave the process at once
/// when the bitmap is released.
final class Bitmap: @unchecked Sendable {
  // The class is Sendable because no code writes after `init`, and the pages exist as long as the
  // object.

  let width: Int
  let height: Int
  private let pages: UnsafeMutableRawPointer

  var byteCount: Int { width * height * 4 }

  /// `fill` gets the pixels, which are all zero. No other code writes to them.
  init<Failure>(
    width: Int, height: Int,
    fill: (UnsafeMutableBufferPointer<UInt32>) throws(Failure) -> Void
  ) throws(Failure) {
    precondition((1...16384).contains(width) && (1...16384).contains(height), "absurdly large")
    self.width = width
    self.height = height
    let (count, protection) = (width * height, PROT_READ | PROT_WRITE)
    guard let pages = mmap(nil, count * 4, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      pages != MAP_FAILED
    else { fatalError("no memory for a picture of \(width) × \(height)") }
    self.pages = pages
    let pixels = pages.bindMemory(to: UInt32.self, capacity: count)
    try fill(UnsafeMutableBufferPointer(start: pixels, count: count))
  }

  deinit { munmap(pages, byteCount) }

  func withPixels<Result>(_ body: (UnsafeBufferPointer<UInt32>) throws -> Result) rethrows -> Result
  {
    let count = width * height
    return try withExtendedLifetime(self) {
      try body(UnsafeBufferPointer(start: pages.assumingMemoryBound(to: UInt32.self), count: count))
    }
  }

  /// A checksum that distinguishes two pictures.
  var digest: Digest { withPixels { Digest(UnsafeRawBufferPointer($0)) } }
}

/// A digest: FNV-1a over words of four bytes.
struct Digest: Hashable, Sendable, CustomStringConvertible {
  let value: UInt64

  init(_ bytes: UnsafeRawBufferPointer) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    var offset = 0
    // A `for` loop takes ten times as long in a debug build.
    while offset + 4 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      hash = (hash ^ UInt64(word)) &* 0x100_0000_01b3
      offset += 4
    }
    value = hash
  }

  var description: String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
