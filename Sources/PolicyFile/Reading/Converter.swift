import Policy
import YAML

/// Makes a value out of a node, or says what is wrong with the node.
struct Converter<Value> {
  /// Follows "must be": ``a duration such as `10s` ``.
  var expects: String
  /// The same for programs: see `ValueShape`.
  var shape: ValueShape = .any
  /// The value as a file has it.
  var write: (Value) -> YAMLText = { .text("\($0)") }
  var convert: (YAMLNode) -> Result<Value, Problem>
}

/// Why a node has no value of the wanted kind.
struct Problem: Error {
  /// Follows the key: "can't be negative". `nil`: "must be … , not …".
  var message: String?
  var suggestion: String?
  /// Where in a scalar's text, in Unicode scalars, if not at its beginning.
  var offset: Int? = nil

  static let wrongKind = Problem(message: nil, suggestion: nil)
  static func write(_ text: String) -> Problem {
    Problem(message: nil, suggestion: "write `\(shortened(text))`")
  }
}

extension Converter {
  /// A converter for values that are one word or text.
  static func scalar(
    _ expects: String, shape: ValueShape = .text,
    write: @escaping (Value) -> YAMLText = { .text("\($0)") },
    _ convert: @escaping (String) -> Result<Value, Problem>
  ) -> Converter {
    Converter(expects: expects, shape: shape, write: write) { node in
      guard let scalar = node.scalar, !node.isEmpty else { return .failure(.wrongKind) }
      return convert(scalar.string)
    }
  }

  /// The value, or a word that stands for another.
  func orWord(_ word: String, _ value: Value) -> Converter where Value: Equatable {
    Converter(
      expects: "\(expects), or `\(word)`", shape: .either([shape, .words([word])]),
      write: { $0 == value ? .plain(word) : write($0) }
    ) { node in
      if node.scalar?.string == word { return .success(value) }
      return convert(node).mapError { problem in
        guard let text = node.scalar?.string, nearest(to: text, among: [word]) != nil else {
          return problem
        }
        return Problem(message: nil, suggestion: "did you mean `\(word)`?")
      }
    }
  }

  /// The value, or a word for none.
  func or(_ word: String) -> Converter<Value?> where Value: Equatable {
    Converter<Value?>(
      expects: expects, shape: shape, write: { $0.map(write) ?? .plain(word) },
      convert: { convert($0).map(Optional.some) }
    ).orWord(word, nil)
  }

  /// Only for reading.
  func map<Other>(_ transform: @escaping (Value) -> Other) -> Converter<Other> {
    Converter<Other>(expects: expects, shape: shape) { convert($0).map(transform) }
  }

  /// - Parameter back: for writing.
  func map<Other>(
    _ transform: @escaping (Value) -> Other, back: @escaping (Other) -> Value
  ) -> Converter<Other> {
    Converter<Other>(expects: expects, shape: shape, write: { write(back($0)) }) {
      convert($0).map(transform)
    }
  }

  /// The value, if it passes; otherwise the problem that `check` finds.
  ///
  /// - Parameter kind: what the documentation calls such a value.
  func checked(kind: String? = nil, _ check: @escaping (Value) -> Problem?) -> Converter {
    Converter(
      expects: expects, shape: kind.map(shape.called) ?? shape, write: write
    ) { node in
      convert(node).flatMap { value in check(value).map { .failure($0) } ?? .success(value) }
    }
  }
}

extension Converter where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// One of the enumeration's words.
  static var choice: Converter {
    let words = Value.allCases.map(\.rawValue)
    return .scalar(listed(words), shape: .words(words), write: { .plain($0.rawValue) }) { text in
      if let value = Value(rawValue: text) { return .success(value) }
      return .failure(Problem(message: nil, suggestion: didYouMean(text, among: words)))
    }
  }
}

extension Converter where Value == Bool {
  static var boolean: Converter {
    .scalar("`true` or `false`", shape: .truth, write: { .plain("\($0)") }) { text in
      switch text {
      case "true": .success(true)
      case "false": .success(false)
      default:
        switch text.lowercased() {
        case "true", "yes", "on", "y", "1": .failure(.write("true"))
        case "false", "no", "off", "n", "0": .failure(.write("false"))
        default:
          .failure(
            Problem(message: nil, suggestion: didYouMean(text, among: ["true", "false"])))
        }
      }
    }
  }
}

extension Converter where Value == Int {
  static func integer(_ range: ClosedRange<Int>) -> Converter {
    let expects =
      range.upperBound == .max
      ? "a whole number from \(range.lowerBound)"
      : "a whole number from \(range.lowerBound) to \(range.upperBound)"
    return .scalar(expects, shape: .whole(range), write: { .plain("\($0)") }) { text in
      guard let value = Int(text), !text.hasPrefix("+"), range.contains(value) else {
        return .failure(.wrongKind)
      }
      return .success(value)
    }
  }
}

extension Converter where Value: AdditiveArithmetic & Comparable {
  var notZero: Converter {
    checked(kind: "\(shape.kind) over 0") {
      $0 > .zero ? nil : Problem(message: "must be more than zero")
    }
  }
}

extension Converter where Value == String {
  /// Any text without NUL, which no system call could pass on.
  static func text(_ expects: String) -> Converter {
    .scalar(expects) { text in
      text.unicodeScalars.contains("\0")
        ? .failure(Problem(message: "can't hold a NUL character")) : .success(text)
    }
  }

  /// See `NameRule`.
  static func name(_ expects: String) -> Converter {
    .scalar(
      expects, shape: .matching(NameRule.pattern, example: "my-policy").called("name")
    ) { text in
      NameRule.allows(text)
        ? .success(text)
        : .failure(Problem(message: nil, suggestion: "a name has \(NameRule.text)"))
    }
  }
}
