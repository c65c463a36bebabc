/// A key that was pressed in a terminal.
package enum TerminalKey: Hashable, Sendable {
  case character(Character)
  case up, down, pageUp, pageDown, home, end
  case enter, escape, backspace
  /// Ctrl-D
  case endOfInput
}

/// Reads keys from a terminal's bytes. The sequences are those of the VT100, xterm, rxvt, tmux and
/// the Linux console. An unknown sequence is dropped.
package struct KeyReader: Sendable {
  /// The beginning of a sequence or of a character that isn't complete yet.
  private var pending: [UInt8] = []

  package init() {}

  /// True if more bytes may belong to those that were read. If none arrive soon, call `finish`.
  package var isWaiting: Bool { !pending.isEmpty }

  package mutating func keys(in bytes: [UInt8]) -> [TerminalKey] {
    let input = pending + bytes
    pending = []
    var keys: [TerminalKey] = []
    var offset = 0
    while offset < input.count {
      guard let (length, key) = Self.next(in: input[offset...]) else {
        pending = Array(input[offset...])
        break
      }
      if let key { keys.append(key) }
      offset += length
    }
    return keys
  }

  /// Called when no more bytes have arrived: Escape was pressed, and no sequence has begun.
  package mutating func finish() -> [TerminalKey] {
    defer { pending = [] }
    return pending.first == Self.escape ? [.escape] : []
  }

  private static let escape: UInt8 = 0x1B

  /// Returns nil if more bytes are needed.
  private static func next(in input: ArraySlice<UInt8>) -> (length: Int, key: TerminalKey?)? {
    guard let first = input.first else { return nil }
    switch first {
    case escape: return sequence(in: input)
    case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return (1, .enter)
    case 0x7F, 0x08: return (1, .backspace)
    case 0x04: return (1, .endOfInput)
    case 0..<0x20: return (1, nil)
    default:
      return firstCharacter(of: input).map { length, text in
        (length, text?.first.map(TerminalKey.character))
      }
    }
  }

  private static func sequence(
    in input: ArraySlice<UInt8>
  ) -> (length: Int, key: TerminalKey?)? {
    let afterEscape = input.dropFirst()
    guard let second = afterEscape.first else { return nil }
    switch second {
    case UInt8(ascii: "["):
      let parameters = afterEscape.dropFirst().prefix { (0x20..<0x40).contains($0) }
      guard let final = afterEscape.dropFirst(1 + parameters.count).first else { return nil }
      return (3 + parameters.count, key(final, parameters))
    case UInt8(ascii: "O"):
      guard let final = afterEscape.dropFirst().first else { return nil }
      return (3, key(final, []))
    default:
      // This is Escape, and another key right after it.
      return (1, .escape)
    }
  }

  private static func key(_ final: UInt8, _ parameters: ArraySlice<UInt8>) -> TerminalKey? {
    switch final {
    case UInt8(ascii: "A"): .up
    case UInt8(ascii: "B"): .down
    case UInt8(ascii: "H"): .home
    case UInt8(ascii: "F"): .end
    case UInt8(ascii: "~"):
      switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
      case "1", "7": .home
      case "4", "8": .end
      case "5": .pageUp
      case "6": .pageDown
      default: nil
      }
    default: nil
    }
  }
}
