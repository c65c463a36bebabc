/// A pattern for whole texts. `*` stands for any number of any characters (also `/`), `?` for one
/// character, and `\` takes its special meaning from the character after it. There are no classes
/// and no alternatives.
public struct Glob: Hashable, Sendable, CustomStringConvertible {
  /// The pattern as it is written.
  public let pattern: String
  fileprivate let tokens: [Token]

  fileprivate enum Token: Hashable, Sendable {
    case anything
    case one
    case scalar(Unicode.Scalar)
  }

  public init(_ pattern: String) {
    self.pattern = pattern
    var tokens: [Token] = []
    var scalars = pattern.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      switch scalar {
      case "*":
        // Two in a row match what one matches, and would only take longer.
        if tokens.last != .anything { tokens.append(.anything) }
      case "?": tokens.append(.one)
      // A `\` at the end stands for itself.
      case "\\": tokens.append(.scalar(scalars.next() ?? "\\"))
      default: tokens.append(.scalar(scalar))
      }
    }
    self.tokens = tokens
  }

  public var description: String { pattern }

  /// Whether the whole text matches. The time is at most the product of both lengths, because only
  /// the last `*` is ever tried again.
  public func matches(_ text: String) -> Bool {
    let scalars = Array(text.unicodeScalars)
    var (position, token) = (0, 0)
    var retry: (token: Int, position: Int)?
    while position < scalars.count {
      if token < tokens.count, tokens[token] == .anything {
        retry = (token + 1, position)
        token += 1
      } else if token < tokens.count, tokens[token].accepts(scalars[position]) {
        token += 1
        position += 1
      } else if let last = retry {
        retry = (last.token, last.position + 1)
        (token, position) = (last.token, last.position + 1)
      } else {
        return false
      }
    }
    return tokens[token...].allSatisfy { $0 == .anything }
  }
}

extension Glob.Token {
  fileprivate func accepts(_ scalar: Unicode.Scalar) -> Bool {
    switch self {
    case .anything: false
    case .one: true
    case .scalar(let expected): expected == scalar
    }
  }
}
