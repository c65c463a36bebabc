import Glibc
import Linux
import Synchronization

/// A search for readiness in what a worker adds to its log. On any thread: the log's file system may not
/// answer, and the worker may have put another file in the log's place.
public final class LogScan: Sendable {
  private enum Scanner {
    case line(LogLineScanner)
    case pattern(LogPatternScanner)
  }
  private struct State {
    var scanner: Scanner
    var isFound = false
  }
  private let state: Mutex<State>

  /// Looks for a text, from `offset` on.
  init(_ place: LogPlace, offset: Int64, text: String) {
    state = Mutex(State(scanner: .line(LogLineScanner(place, offset: offset, text: text))))
  }

  /// Looks for a line that matches.
  init(_ place: LogPlace, offset: Int64, pattern: String) {
    state = Mutex(
      State(scanner: .pattern(LogPatternScanner(place, offset: offset, pattern: pattern))))
  }

  /// Looks at what has been added since the last look. True once it has been found: also by an earlier look, whose
  /// outcome may have come too late.
  public func look() throws(SystemCallError) -> Bool {
    let result = state.withLock { state in
      Result { () throws(SystemCallError) in
        if state.isFound { return true }
        switch state.scanner {
        case .pattern(let pattern): state.isFound = try pattern.scan()
        case .line(var line):
          defer { state.scanner = .line(line) }
          state.isFound = try line.scan()
        }
        return state.isFound
      }
    }
    return try result.get()
  }
}

extension LogPlace {
  /// The part that was added to the log after `offset`, which moves on; nil: nothing.
  func added(
    from offset: inout Int64, atMost most: Int64
  ) throws(SystemCallError) -> [UInt8]? {
    var position = offset
    defer { offset = position }
    return try reading { (file, size) throws(SystemCallError) in
      // The log was emptied.
      if size < position { position = 0 }
      if size <= position { return nil }
      let bytes = try file.readBytes(
        upTo: Int(min(size - position, most)), at: position, path: path)
      position += Int64(bytes.count)
      return bytes
    }
  }
}
