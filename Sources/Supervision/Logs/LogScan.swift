import Glibc
import Linux
import Synchronization

/// A search for the sign of readiness in what a worker adds to its log. It may be used on any
/// thread: the log's file system may not answer, and the worker may have replaced the log by
/// another file.
public final class LogScan: Sendable {
  private enum Search {
    case text([UInt8])
    /// Only complete lines count: `up$` must not match the beginning of `upside`.
    case lines(Pattern)
  }
  private let destination: LogDestination
  private let state: Mutex<State>

  /// Searches for a text, from `offset` on (in bytes).
  init(_ destination: LogDestination, offset: Int64, text: String) {
    self.destination = destination
    state = Mutex(State(search: .text(Array(text.utf8)), offset: offset))
  }

  /// Searches for a line that matches an extended regular expression, from `offset` on (in bytes).
  init(_ destination: LogDestination, offset: Int64, pattern: String) {
    self.destination = destination
    state = Mutex(State(search: .lines(Pattern(pattern)), offset: offset))
  }

  /// Scans what was added since the last call. It returns true once the text was found, and in all
  /// later calls, because the result of a call may have arrived too late to be used.
  public func scan() throws(SystemCallError) -> Bool {
    try state.withLock { state throws(SystemCallError) in try state.scan(destination) }
  }

  private struct State {
    let search: Search
    var offset: Int64
    /// The last bytes that were read: the text may have begun in them, or they are the beginning of
    /// a line that hasn't ended yet.
    var tail: [UInt8] = []
    var hasMatched = false

    /// The number of bytes that one scan reads at most, so that a scan of a large log ends.
    static let textChunk: Int64 = 256 << 10
    static let lineChunk: Int64 = 64 << 10
    /// The number of bytes of a line that are matched. Further bytes are ignored.
    static let maxLine = 16 << 10

    mutating func scan(_ destination: LogDestination) throws(SystemCallError) -> Bool {
      if hasMatched { return true }
      switch search {
      case .text(let text):
        let added = try destination.added(from: &offset, atMost: Self.textChunk)
        tail += added ?? []
        hasMatched = contains(text)
        tail = Array(tail.suffix(max(0, text.count - 1)))
      case .lines(let pattern) where pattern.isValid:
        let added = try destination.added(from: &offset, atMost: Self.lineChunk)
        hasMatched = matches(pattern, added ?? [])
      case .lines: break
      }
      return hasMatched
    }

    /// Whether `tail` contains a text.
    private func contains(_ text: [UInt8]) -> Bool {
      guard let first = text.first else { return true }
      return tail.withUnsafeBytes { haystack in
        text.withUnsafeBytes { needle in
          let last = haystack.count - needle.count
          var from = 0
          while from <= last {
            guard let at = haystack[from...last].firstIndex(of: first) else { return false }
            if haystack[at..<(at + needle.count)].elementsEqual(needle) { return true }
            from = at + 1
          }
          return false
        }
      }
    }

    private mutating func matches(_ pattern: Pattern, _ added: [UInt8]) -> Bool {
      var remaining = added[...]
      while let end = remaining.firstIndex(of: UInt8(ascii: "\n")) {
        append(remaining[..<end])
        remaining = remaining[(end + 1)...]
        defer { tail = [] }
        if pattern.matches(tail) { return true }
      }
      append(remaining)
      return false
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) {
      tail += bytes.prefix(max(0, Self.maxLine - tail.count))
    }
  }

  /// A POSIX extended regular expression.
  private final class Pattern {
    private var expression = regex_t()
    let isValid: Bool

    init(_ pattern: String) {
      isValid = regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB) == 0
    }

    deinit { if isValid { regfree(&expression) } }

    func matches(_ line: [UInt8]) -> Bool {
      // The C library would end the line at a NUL.
      var text = line.map { $0 == 0 ? UInt8(ascii: " ") : $0 }
      if text.last == UInt8(ascii: "\r") { text.removeLast() }
      text.append(0)
      return text.withUnsafeBytes { bytes in
        bytes.withMemoryRebound(to: CChar.self) {
          regexec(&expression, $0.baseAddress, 0, nil, 0) == 0
        }
      }
    }
  }
}

extension LogDestination {
  /// The bytes that were added to the log after `offset`, at most `limit`. `offset` advances.
  /// Returns nil if there are none.
  func added(
    from offset: inout Int64, atMost limit: Int64
  ) throws(SystemCallError) -> [UInt8]? {
    var position = offset
    defer { offset = position }
    return try reading { (file, size) throws(SystemCallError) in
      // The log was truncated.
      if size < position { position = 0 }
      if size <= position { return nil }
      let bytes = try file.readBytes(
        upTo: Int(min(size - position, limit)), at: position, path: path)
      position += Int64(bytes.count)
      return bytes
    }
  }
}
