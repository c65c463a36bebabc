import Glibc
import Linux

/// Searches the output that is added to a log for a line that matches a POSIX extended regular
/// expression. Only complete lines count: `up$` must not match the beginning of `upside`.
final class LogPatternScanner {
  private let destination: LogDestination
  private var offset: Int64
  private var expression = regex_t()
  private let isValid: Bool
  /// The beginning of a line that hasn't ended yet.
  private var tail: [UInt8] = []

  /// The number of bytes that one `scan` reads at most.
  private static let chunk: Int64 = 64 << 10
  /// The number of bytes of a line that are matched. Further bytes are ignored.
  private static let maxLine = 16 << 10

  /// - Parameter offset: the offset in bytes at which the search begins.
  init(_ destination: LogDestination, offset: Int64, pattern: String) {
    self.destination = destination
    self.offset = offset
    isValid = regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB) == 0
  }

  deinit { if isValid { regfree(&expression) } }

  /// Reads what was added, and returns true once a line has matched.
  func scan() throws(SystemCallError) -> Bool {
    guard isValid, let added = try destination.added(from: &offset, atMost: Self.chunk) else {
      return false
    }
    return matches(added[...])
  }

  private func matches(_ added: ArraySlice<UInt8>) -> Bool {
    var remaining = added
    while let end = remaining.firstIndex(of: UInt8(ascii: "\n")) {
      append(remaining[..<end])
      remaining = remaining[(end + 1)...]
      defer { tail = [] }
      if matchesTail() { return true }
    }
    append(remaining)
    return false
  }

  private func append(_ bytes: ArraySlice<UInt8>) {
    tail += bytes.prefix(max(0, Self.maxLine - tail.count))
  }

  private func matchesTail() -> Bool {
    if tail.last == UInt8(ascii: "\r") { tail.removeLast() }
    // The C library would end the line at a NUL.
    let line = tail.map { $0 == 0 ? UInt8(ascii: " ") : $0 } + [0]
    return line.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        regexec(&expression, $0.baseAddress, 0, nil, 0) == 0
      }
    }
  }
}
