import Linux

/// Searches the output that is added to a log for a text.
struct LogLineScanner: Sendable {
  private let destination: LogDestination
  private var offset: Int64
  private let text: [UInt8]
  /// The last bytes that were read, in which the text may have begun.
  private var tail: [UInt8] = []

  /// The number of bytes that one `scan` reads at most, so that a scan of a large log ends.
  static let chunk: Int64 = 256 << 10

  /// - Parameter offset: the offset in bytes at which the search begins.
  init(_ destination: LogDestination, offset: Int64, text: String) {
    self.destination = destination
    self.offset = offset
    self.text = Array(text.utf8)
  }

  /// Reads what was added, and returns true once the text has been written.
  mutating func scan() throws(SystemCallError) -> Bool {
    guard let added = try destination.added(from: &offset, atMost: Self.chunk) else {
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
