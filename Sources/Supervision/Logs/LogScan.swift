import Linux
import Synchronization

/// A search for the sign of readiness in what a worker adds to its log. It may be used on any
/// thread: the log's file system may not answer, and the worker may have replaced the log by
/// another file.
public final class LogScan: Sendable {
  private enum Scanner {
    case line(LogLineScanner)
    case pattern(LogPatternScanner)
  }
  private struct State {
    var scanner: Scanner
    var hasMatched = false
  }
  private let state: Mutex<State>

  /// Searches for a text, from `offset` on (in bytes).
  init(_ destination: LogDestination, offset: Int64, text: String) {
    state = Mutex(State(scanner: .line(LogLineScanner(destination, offset: offset, text: text))))
  }

  /// Searches for a line that matches an extended regular expression, from `offset` on (in bytes).
  init(_ destination: LogDestination, offset: Int64, pattern: String) {
    state = Mutex(
      State(scanner: .pattern(LogPatternScanner(destination, offset: offset, pattern: pattern))))
  }

  /// Scans what was added since the last call. It returns true once the text was found, and in all
  /// later calls, because the result of a call may have arrived too late to be used.
  public func scan() throws(SystemCallError) -> Bool {
    let result = state.withLock { state in
      Result { () throws(SystemCallError) in
        if state.hasMatched { return true }
        switch state.scanner {
        case .pattern(let pattern): state.hasMatched = try pattern.scan()
        case .line(var line):
          defer { state.scanner = .line(line) }
          state.hasMatched = try line.scan()
        }
        return state.hasMatched
      }
    }
    return try result.get()
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
