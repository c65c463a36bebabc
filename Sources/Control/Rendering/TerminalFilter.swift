/// Makes the output of a program safe for a terminal, chunk by chunk. Text, line ends, tabs and
/// colours (SGR sequences) stay. Every other control character is shown as `escaped` does, and so
/// are characters that reorder a line (bidirectional controls). Bytes that aren't UTF-8 are shown
/// as `\x9b`.
public struct TerminalFilter: Sendable {
  /// The beginning of a character or sequence that isn't complete yet.
  private var pending: [UInt8] = []
  private var hasColoured = false

  public init() {}

  public mutating func filter(_ bytes: [UInt8]) -> [UInt8] {
    let input = pending + bytes
    pending = []
    var output: [UInt8] = []
    output.reserveCapacity(input.count)
    var offset = 0
    while offset < input.count {
      guard let length = next(in: input[offset...], to: &output) else {
        pending = Array(input[offset...])
        break
      }
      offset += length
    }
    return output
  }

  /// The last output: the bytes of an incomplete character, and a reset of the colours.
  public mutating func finish() -> [UInt8] {
    var output: [UInt8] = []
    for byte in pending { Self.show(byte, in: &output) }
    pending = []
    if hasColoured { output += Self.reset }
    hasColoured = false
    return output
  }

  private static let escape: UInt8 = 0x1B
  private static let reset = Array("\u{1B}[0m".utf8)
  /// The maximum length of a colour's sequence in bytes.
  private static let maxSequence = 64

  /// Returns the number of bytes that were consumed, or nil if more bytes are needed.
  private mutating func next(in input: ArraySlice<UInt8>, to output: inout [UInt8]) -> Int? {
    let first = input[input.startIndex]
    switch first {
    case UInt8(ascii: "\n"), UInt8(ascii: "\t"), 0x20..<0x7F:
      output.append(first)
      return 1
    case UInt8(ascii: "\r"):
      // Before a line end a carriage return has no effect. Anywhere else it would hide the
      // beginning of the line.
      guard input.count > 1 else { return nil }
      if input[input.startIndex + 1] == UInt8(ascii: "\n") { return 1 }
      output += escaped("\r").utf8
      return 1
    case Self.escape:
      return colour(in: input, to: &output)
    default:
      guard let (length, text) = firstCharacter(of: input) else { return nil }
      if let text { output += escaped(text).utf8 } else { Self.show(first, in: &output) }
      return length
    }
  }

  /// Handles a colour: ESC [, digits and separators, and m.
  private mutating func colour(in input: ArraySlice<UInt8>, to output: inout [UInt8]) -> Int? {
    let parameters = input.dropFirst(2).prefix { (0x30...0x3B).contains($0) }
    let length = 2 + parameters.count
    if length <= Self.maxSequence, input.count < 2 || input[input.startIndex + 1] == 0x5B {
      if input.count <= length { return nil }
      if input[input.startIndex + length] == UInt8(ascii: "m") {
        hasColoured = true
        output += input.prefix(length + 1)
        return length + 1
      }
    }
    output += escaped("\u{1B}").utf8
    return 1
  }

  private static func show(_ byte: UInt8, in output: inout [UInt8]) {
    if byte < 0x80 {
      output += escaped(String(Unicode.Scalar(byte))).utf8
    } else {
      output += "\\x\(String(byte, radix: 16))".utf8
    }
  }
}

/// Returns the character with which bytes begin, and its length. A byte that isn't UTF-8 has no
/// text. The result is nil if more bytes are needed.
func firstCharacter(of input: ArraySlice<UInt8>) -> (length: Int, text: String?)? {
  let length =
    switch input.first ?? 0 {
    case 0xC2...0xDF: 2
    case 0xE0...0xEF: 3
    case 0xF0...0xF4: 4
    default: 1
    }
  let bytes = input.prefix(length)
  if let text = String(validating: bytes, as: UTF8.self) { return (length, text) }
  let isBegun = bytes.count < length && bytes.dropFirst().allSatisfy { $0 & 0xC0 == 0x80 }
  return isBegun ? nil : (1, nil)
}
