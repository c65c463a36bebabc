/// Cuts a worker's output into lines. A line that doesn't end is cut after `maxLine` bytes.
public struct LogLineCutter: Sendable {
  public static let maxLine = 64 << 10

  public struct Line: Hashable, Sendable {
    /// The line without its line end.
    public var bytes: [UInt8]
    /// The offset behind the line and its line end, in the whole output.
    public var end: Int
    /// True if the line is longer than `maxLine`, and continues in the next one.
    public var isCut = false

    public var text: String { String(decoding: bytes, as: UTF8.self) }
  }

  private var pending: [UInt8] = []
  private var offset: Int

  /// - Parameter offset: the offset of the output that is added first.
  public init(offset: Int = 0) { self.offset = offset }

  /// Adds output. Returns the lines that have ended.
  public mutating func lines(in bytes: [UInt8]) -> [Line] {
    pending += bytes
    var result: [Line] = []
    var start = 0
    while start < pending.count {
      let end = pending[start...].firstIndex(of: UInt8(ascii: "\n"))
      var line = pending[start..<(end ?? pending.count)]
      if end != nil, line.last == UInt8(ascii: "\r") { line.removeLast() }
      let isCut = line.count > Self.maxLine
      if isCut { line = line.prefix(Self.maxLine) }
      guard let next = isCut ? line.endIndex : end.map({ $0 + 1 }) else { break }
      result.append(Line(bytes: Array(line), end: offset + next, isCut: isCut))
      start = next
    }
    pending.removeFirst(start)
    offset += start
    return result
  }

  /// The remaining output, which has no line end; nil if there is none.
  public mutating func finish() -> Line? {
    defer { pending = [] }
    return pending.isEmpty ? nil : Line(bytes: pending, end: offset + pending.count)
  }
}
