/// The outcome of a new process between fork and execve.
public enum StartOutcome: Hashable, Sendable {
  /// The process has executed the program, or has ended before that without a report.
  case executed
  /// A step failed. `code` is as in errno(3); `limit` is the index of the limit that couldn't be
  /// set.
  case failed(SpawnError.Step, code: Int32, limit: Int)
  /// The process was still in this step, and in this state, at its deadline. The state is nil if it
  /// can't be read.
  case hung(SpawnError.Step, ProcessStat.State?)
}

/// The state machine of one start: it waits for the report, and its outcome never changes after
/// that. It does no I/O; `StartingProcess` gives it the data that was read and the end of the
/// deadline.
///
///     waiting ──report──▶ executed or failed
///        └───deadline───▶ hung
public struct StartReport: Hashable, Sendable {
  /// The outcome; nil while the report is awaited.
  public private(set) var outcome: StartOutcome?

  /// The size in bytes of what a child writes when a step fails: the step and errno, each an
  /// `Int32`.
  static let size = 2 * MemoryLayout<Int32>.size

  public init() {}

  /// Handles the bytes from the report pipe; an empty array means the end of the file.
  public mutating func received(_ bytes: [UInt8]) {
    guard outcome == nil else { return }
    // The kernel writes so few bytes all at once or not at all.
    guard bytes.count == Self.size else { return outcome = .executed }
    let (word, code) = bytes.withUnsafeBytes {
      ($0.loadUnaligned(as: Int32.self), $0.loadUnaligned(fromByteOffset: 4, as: Int32.self))
    }
    outcome = .failed(
      SpawnError.Step(rawValue: word & 0xFF) ?? .fork, code: code, limit: Int(word >> 8))
  }

  /// Ends the wait: the deadline has passed. A known outcome stays.
  public mutating func expired(in step: SpawnError.Step, _ state: ProcessStat.State?) {
    if outcome == nil { outcome = .hung(step, state) }
  }
}
