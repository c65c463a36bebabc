/// Splits a byte stream into lines, for pieces of any size.
///
/// Add bytes with `append`, then call `next` until it returns nil. A line ends with LF. A CR before
/// it is dropped, so that tools such as `socat` can be used. Blank lines are skipped. The maximum
/// length keeps a peer that never ends its line from filling the daemon's memory. A piece for
/// `append` should not be larger than the memory that may be used for it.
public struct LineFramer: Sendable {
  /// The maximum length of a line in bytes without the line end: 1 MiB.
  public static let defaultMaximumLength = 1 << 20

  /// The error of a line that is longer than the maximum. The start of the next line is unknown, so
  /// the connection must be closed. `next` throws this error from then on.
  public struct Overflow: Error, Hashable, Sendable, CustomStringConvertible {
    /// The maximum length in bytes.
    public var maximumLength: Int
    public var description: String { "a line is longer than \(maximumLength) bytes" }
  }

  /// The maximum length of a line in bytes, without the line end.
  public let maximumLength: Int
  private var buffer: [UInt8] = []
  /// The number of bytes that have been returned as lines.
  private var consumed = 0
  /// The number of bytes that have been searched for a line end. Each byte is searched once, for
  /// pieces of any size.
  private var searched = 0
  private var overflowed = false

  public init(maximumLength: Int = LineFramer.defaultMaximumLength) {
    self.maximumLength = maximumLength
  }

  /// The number of bytes of a line that hasn't ended yet. It is valid when `next` has returned nil.
  public var pendingBytes: Int { buffer.count - consumed }

  /// Adds the next bytes of the stream. It does nothing after an overflow.
  public mutating func append(_ bytes: some Sequence<UInt8>) {
    guard !overflowed else { return }
    if consumed > 0 {
      buffer.removeFirst(consumed)
      searched -= consumed
      consumed = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// Returns the next whole line without its end, or nil when more bytes are needed.
  public mutating func next() throws(Overflow) -> [UInt8]? {
    while !overflowed {
      guard let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
        searched = buffer.count
        // One byte more than the maximum may be the CR of a line end that is still to come.
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
