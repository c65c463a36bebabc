/// A type whose JSON is one literal, number or string.
protocol JSONScalar: Codable {
  /// Returns the JSON of the value, or nil if JSON can't represent it.
  func json(_ rules: JSONCodingRules) -> JSON?
  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> Self
}

extension Bool: JSONScalar {
  func json(_ rules: JSONCodingRules) -> JSON? { .bool(self) }
  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> Bool {
    guard case .bool(let value) = json else { throw .wrongType }
    return value
  }
}

extension String: JSONScalar {
  func json(_ rules: JSONCodingRules) -> JSON? { .string(self) }
  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> String {
    guard let value = json.text else { throw .wrongType }
    return value
  }
}

extension Double: JSONScalar {
  func json(_ rules: JSONCodingRules) -> JSON? {
    guard isFinite || rules.permitsNonFinite else { return nil }
    // Beyond 2^53, a Double's text has an exponent.
    if rules.shortensWholeDoubles, magnitude <= 0x1p53, let whole = Int64(exactly: self),
      whole != 0 || sign == .plus
    {
      return .int(whole)
    }
    return .double(self)
  }

  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> Double {
    if let value = json.number { return value }
    if rules.permitsNonFinite, let value = json.text.flatMap(Double.init) { return value }
    throw .wrongType
  }
}

extension Float: JSONScalar {
  /// A `Float` is written as its shortest text: 0.1, and not 0.10000000149011612.
  func json(_ rules: JSONCodingRules) -> JSON? { (Double("\(self)") ?? Double(self)).json(rules) }

  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> Float {
    let value = try Double.read(json, rules)
    guard Float(value).isFinite || !value.isFinite else { throw .outOfRange }
    return Float(value)
  }
}

extension JSONScalar where Self: FixedWidthInteger {
  func json(_ rules: JSONCodingRules) -> JSON? {
    Int64(exactly: self).map(JSON.int) ?? UInt64(exactly: self).map(JSON.unsigned)
  }

  /// Reads a whole number. `2.0` and `2e0` are whole numbers, too.
  static func read(_ json: JSON, _ rules: JSONCodingRules) throws(JSONMisfit) -> Self {
    let value: Self? =
      switch json {
      case .int(let value): Self(exactly: value)
      case .unsigned(let value): Self(exactly: value)
      case .double(let value): Self(exactly: value)
      default: throw .wrongType
      }
    guard let value else { throw .outOfRange }
    return value
  }
}

extension Int: JSONScalar {}
extension Int8: JSONScalar {}
extension Int16: JSONScalar {}
extension Int32: JSONScalar {}
extension Int64: JSONScalar {}
extension UInt: JSONScalar {}
extension UInt8: JSONScalar {}
extension UInt16: JSONScalar {}
extension UInt32: JSONScalar {}
extension UInt64: JSONScalar {}
