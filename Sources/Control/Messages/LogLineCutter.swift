/// Cuts a worker's output into lines. A line that doesn't end is cut after `maxLine` bytes.
public struct LogLineCutter: Sendable {
  public static let maxLine = 64 << 10

  public struct Line: Hashable, Sendable {
    public var text: String
    public var isCut = false
  }

  private var pending: [UInt8] = []

  public init() {}

  /// Adds output. Returns the lines that have ended.
  public mutating func lines(in bytes: [UInt8]) -> [Line] {
    pending += bytes
    var result: [Line] = []
    var start = 0
    while let end = pending[start...].firstIndex(of: UInt8(ascii: "\n")) {
      result += Self.pieces(of: pending[start..<end])
      start = end + 1
    }
    while pending.count - start > Self.maxLine {
      result.append(Line(text: Self.text(pending[start..<start + Self.maxLine]), isCut: true))
      start += Self.maxLine
    }
    pending.removeFirst(start)
    return result
  }

  /// The remaining output, which has no line end.
  public mutating func finish() -> [Line] {
    defer { pending = [] }
    return pending.isEmpty ? [] : Self.pieces(of: pending[...])
  }

  private static func pieces(of line: ArraySlice<UInt8>) -> [Line] {
    var result: [Line] = []
    var line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    while line.count > maxLine {
      result.append(Line(text: text(line.prefix(maxLine)), isCut: true))
      line = line.dropFirst(maxLine)
    }
    return result + [Line(text: text(line))]
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    String(decoding: bytes, as: UTF8.self)
  }
}
