/// The delays before a stream is opened again. Each is twice as long as the one before. After a
/// stream that has lasted, they start from the first one.
public struct RetryDelays: Hashable, Sendable {
  private let first: Duration
  private let longest: Duration
  private var current: Duration

  public init(first: Duration = .milliseconds(500), longest: Duration = .seconds(30)) {
    self.first = first
    self.longest = longest
    current = first
  }

  /// - Parameter lasted: The time for which the stream was open, with the attempt to open it.
  public mutating func next(after lasted: Duration) -> Duration {
    if lasted > longest { current = first }
    defer { current = min(current * 2, longest) }
    return current
  }
}
