import Glibc
import Linux

/// Searches for a text in what is added to a log.
struct LogLineScanner: Sendable {
  private let place: LogPlace
  private var offset: Int64
  private let text: [UInt8]
  /// The end of the part that was read, where the text may have begun.
  private var tail: [UInt8] = []

  /// Bytes that one `scan` reads at most, so that a look at a large log ends.
  static let chunk: Int64 = 256 << 10

  /// `offset`: where to begin, in bytes.
  init(_ place: LogPlace, offset: Int64, text: String) {
    self.place = place
    self.offset = offset
    self.text = Array(text.utf8)
  }

  /// True once the text has been written.
  mutating func scan() throws(SystemCallError) -> Bool {
    guard let added = try place.added(from: &offset, atMost: Self.chunk) else {
      return text.isEmpty
    }
    tail += added
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
