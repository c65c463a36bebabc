/// What became of a new process on its way from fork to execve.
public enum StartOutcome: Hashable, Sendable {
  /// It is the program now, or has ended before that without a report.
  case executed
  /// A step failed. `code` is as in errno(3), `limit` the place of the limit that couldn't be set.
  case failed(SpawnError.Step, code: Int32, limit: Int)
  /// It was still in this step at its deadline, and in this state; nil: its state can't be read.
  case hung(SpawnError.Step, ProcessStat.State?)
}

/// The state machine of one start: waiting for the report, then decided for ever. It touches nothing;
/// `StartingProcess` gives it what was read and what the clock says.
///
///     waiting ──report──▶ executed or failed
///        └───deadline───▶ hung
public struct StartReport: Hashable, Sendable {
  /// nil: waiting.
  public private(set) var outcome: StartOutcome?

  /// What a child writes when a step fails: the step and errno, each an `Int32`.
  static let size = 2 * MemoryLayout<Int32>.size

  public init() {}

  /// What was read from the report pipe; nothing at the end of the file.
  public mutating func received(_ bytes: [UInt8]) {
    guard outcome == nil else { return }
    // The kernel writes so few bytes at once or not at all.
    guard bytes.count == Self.size else { return outcome = .executed }
    let (word, code) = bytes.withUnsafeBytes {
      ($0.loadUnaligned(as: Int32.self), $0.loadUnaligned(fromByteOffset: 4, as: Int32.self))
    }
    outcome = .failed(
      SpawnError.Step(rawValue: word & 0xFF) ?? .fork, code: code, limit: Int(word >> 8))
  }

  /// The deadline has passed.
  public mutating func expired(in step: SpawnError.Step, _ state: ProcessStat.State?) {
    if outcome == nil { outcome = .hung(step, state) }
  }
}
