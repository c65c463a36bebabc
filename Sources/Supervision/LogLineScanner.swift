import Glibc
import Linux

/// Looks for a text in what is added to a log.
public struct LogLineScanner: Sendable {
  private let path: String
  private var offset: Int64
  private let text: [UInt8]
  /// The end of what has been seen, where the text may have begun.
  private var tail: [UInt8] = []

  /// Bytes that one `scan` reads at most, so that a chatty worker doesn't hold up the loop.
  static let chunk: Int64 = 256 << 10

  /// `offset`: where to begin, in bytes.
  public init(path: String, offset: Int64, text: String) {
    self.path = path
    self.offset = offset
    self.text = Array(text.utf8)
  }

  /// True once the text has been written.
  public mutating func scan() throws(SystemCallError) -> Bool {
    let file = try Descriptor.open(path)
    var status = stat()
    _ = try systemCall("fstat", on: path) { fstat(file.raw, &status) }
    // Somebody has emptied it.
    if Int64(status.st_size) < offset { offset = 0 }
    let available = Int64(status.st_size) - offset
    if available <= 0 { return text.isEmpty }
    var bytes = [UInt8](repeating: 0, count: Int(min(available, Self.chunk)))
    let start = offset
    let count = try systemCall("pread", on: path) {
      pread(file.raw, &bytes, bytes.count, off_t(start))
    }
    offset += Int64(count)
    tail += bytes.prefix(count)
    if contains(tail) { return true }
    tail = Array(tail.suffix(max(0, text.count - 1)))
    return false
  }

  private func contains(_ bytes: [UInt8]) -> Bool {
    if text.isEmpty { return true }
    return bytes.withUnsafeBytes { haystack in
      text.withUnsafeBytes { needle in
        memmem(haystack, needle) != nil
      }
    }
  }

  private func memmem(
    _ haystack: UnsafeRawBufferPointer, _ needle: UnsafeRawBufferPointer
  ) -> Int? {
    guard let first = needle.first, haystack.count >= needle.count else { return nil }
    var from = 0
    while from <= haystack.count - needle.count {
      guard
        let at = haystack[from...(haystack.count - needle.count)].firstIndex(of: first)
      else { return nil }
      if haystack[at..<(at + needle.count)].elementsEqual(needle) { return at }
      from = at + 1
    }
    return nil
  }
}
