/// Splits a byte stream into lines, however the stream is divided into pieces.
///
/// Feed it with `append`, then call `next` until it returns nil. A line ends with LF; a CR before
/// it is dropped, so that tools such as `socat` can be used. Blank lines are skipped. The maximum
/// keeps a peer that never ends its line from filling the daemon's memory. A piece for `append` should
/// not be larger than the memory that may be used for it.
public struct LineFramer: Sendable {
  /// 1 MiB, without the line end.
  public static let defaultMaximumLength = 1 << 20

  /// The line was longer than the maximum. The start of the next line is unknown, so
  /// the connection must be closed; `next` throws this from then on.
  public struct Overflow: Error, Hashable, Sendable, CustomStringConvertible {
    /// Bytes.
    public var maximumLength: Int
    public var description: String { "a line is longer than \(maximumLength) bytes" }
  }

  public let maximumLength: Int
  private var buffer: [UInt8] = []
  /// The number of bytes that have been returned as lines.
  private var consumed = 0
  /// The number of bytes that have been searched for a line end: each byte is read once, however small the pieces
  /// are.
  private var searched = 0
  private var overflowed = false

  public init(maximumLength: Int = LineFramer.defaultMaximumLength) {
    self.maximumLength = maximumLength
  }

  /// Bytes of a line that hasn't ended yet (once `next` has returned nil).
  public var pendingBytes: Int { buffer.count - consumed }

  public mutating func append(_ bytes: some Sequence<UInt8>) {
    guard !overflowed else { return }
    if consumed > 0 {
      buffer.removeFirst(consumed)
      searched -= consumed
      consumed = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next whole line without its end, or nil when more bytes are needed.
  public mutating func next() throws(Overflow) -> [UInt8]? {
    while !overflowed {
      guard let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
        searched = buffer.count
        // One more than the maximum: the CR of a line end that is still to come.
        guard pendingBytes <= maximumLength + 1 else { break }
        return nil
      }
      var line = buffer[consumed..<end]
      consumed = end + 1
      searched = consumed
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      guard line.count <= maximumLength else { break }
      if !line.isEmpty { return Array(line) }
    }
    overflowed = true
    buffer = []
    consumed = 0
    searched = 0
    throw Overflow(maximumLength: maximumLength)
  }
}
