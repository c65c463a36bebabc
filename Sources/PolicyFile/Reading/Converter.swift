import Policy
import YAML

/// Converts a node to a value, or returns the problem of the node.
struct Converter<Value> {
  /// The expected value, as it follows "must be" in an error: ``a duration such as `10s` ``.
  var expects: String
  /// The expected value for programs.
  var shape: ValueShape = .any
  /// Returns the value as a file has it.
  var write: (Value) -> YAMLText = { .text("\($0)") }
  var convert: (YAMLNode) -> Result<Value, Problem>
}

/// The reason why a node has no value of the expected kind.
struct Problem: Error {
  /// The text that follows the key in an error: "can't be negative". `nil`: "must be … , not …".
  var message: String?
  var suggestion: String?
  /// The offset of the fault in a scalar's text, in Unicode scalars. nil: it is at the beginning.
  var offset: Int? = nil

  static let wrongKind = Problem()
  static func write(_ text: String) -> Problem {
    Problem(suggestion: "write `\(shortened(text))`")
  }
}

extension Result where Failure == Problem {
  static func problem(_ message: String? = nil, suggestion: String? = nil) -> Result {
    .failure(Problem(message: message, suggestion: suggestion))
  }
}

extension Converter {
  /// Makes a converter for values that are one word or text.
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

  /// Returns a converter that accepts a word for one of the values.
  func orWord(_ word: String, _ value: Value) -> Converter where Value: Equatable {
    Converter(
      expects: "\(expects), or `\(word)`", shape: .either([shape, .keywords([word])]),
      write: { $0 == value ? .plain(word) : write($0) }
    ) { node in
      if node.scalar?.string == word { return .success(value) }
      return convert(node).mapError { problem in
        guard let text = node.scalar?.string, nearest(to: text, among: [word]) != nil else {
          return problem
        }
        return Problem(suggestion: "did you mean `\(word)`?")
      }
    }
  }

  /// Returns a converter that accepts a word for nil.
  func or(_ word: String) -> Converter<Value?> where Value: Equatable {
    Converter<Value?>(
      expects: expects, shape: shape, write: { $0.map(write) ?? .plain(word) },
      convert: { convert($0).map(Optional.some) }
    ).orWord(word, nil)
  }

  /// Returns a converter to another type, for reading only.
  func map<Other>(_ transform: @escaping (Value) -> Other) -> Converter<Other> {
    Converter<Other>(expects: expects, shape: shape) { convert($0).map(transform) }
  }

  /// Returns a converter to another type.
  ///
  /// - Parameter back: the reverse conversion, for writing.
  func map<Other>(
    _ transform: @escaping (Value) -> Other, back: @escaping (Other) -> Value
  ) -> Converter<Other> {
    Converter<Other>(expects: expects, shape: shape, write: { write(back($0)) }) {
      convert($0).map(transform)
    }
  }

  /// Returns a converter that also checks the value. `check` returns its problem, or nil.
  ///
  /// - Parameter kind: the name of such a value in the documentation.
  func checked(kind: String? = nil, _ check: @escaping (Value) -> Problem?) -> Converter {
    Converter(
      expects: expects, shape: kind.map(shape.called) ?? shape, write: write
    ) { node in
      convert(node).flatMap { value in check(value).map { .failure($0) } ?? .success(value) }
    }
  }
}

extension Converter where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// A converter for the words of an enumeration.
  static var choice: Converter {
    let names = Value.allCases.map(\.rawValue)
    return .scalar(listed(names), shape: .keywords(names), write: { .plain($0.rawValue) }) { text in
      if let value = Value(rawValue: text) { return .success(value) }
      return .problem(suggestion: didYouMean(text, among: names))
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
          .problem(suggestion: didYouMean(text, among: ["true", "false"]))
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
  /// A converter for any text without NUL, which no system call could pass on.
  static func text(_ expects: String) -> Converter {
    .scalar(expects) { text in
      text.unicodeScalars.contains("\0")
        ? .problem("can't hold a NUL character") : .success(text)
    }
  }

  /// A converter for names that `NameRule` allows.
  static func name(_ expects: String) -> Converter {
    .scalar(
      expects, shape: .matching(NameRule.pattern, example: "my-policy").called("name")
    ) { text in
      NameRule.allows(text)
        ? .success(text)
        : .problem(suggestion: "a name has \(NameRule.text)")
    }
  }
}
