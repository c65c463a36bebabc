/// The outcome of a new process between fork and execve. It never changes once it is known.
///
///     waiting ──report──▶ executed or failed
///        └───deadline───▶ hung
public enum StartOutcome: Hashable, Sendable {
  /// The process has executed the program, or has ended before that without a report.
  case executed
  /// A step failed. `code` is as in errno(3); `limit` is the index of the limit that couldn't be
  /// set.
  case failed(SpawnError.Step, code: Int32, limit: Int)
  /// The process was still in this step, and in this state, at its deadline. The state is nil if it
  /// can't be read.
  case hung(SpawnError.Step, ProcessStat.State?)

  /// The size in bytes of what a child writes when a step fails: the step and errno, each an
  /// `Int32`.
  static let reportSize = 2 * MemoryLayout<Int32>.size

  /// The outcome that the bytes from the report pipe mean. An empty array is the end of the file.
  public init(report bytes: [UInt8]) {
    // The kernel writes so few bytes all at once or not at all.
    guard bytes.count == Self.reportSize else {
      self = .executed
      return
    }
    let (word, code) = bytes.withUnsafeBytes {
      ($0.loadUnaligned(as: Int32.self), $0.loadUnaligned(fromByteOffset: 4, as: Int32.self))
    }
    self = .failed(
      SpawnError.Step(rawValue: word & 0xFF) ?? .fork, code: code, limit: Int(word >> 8))
  }
}
