import FoundationEssentials
import JSONLines
import Testing

@Suite("Codable values as JSON") struct CodingTests {
  private static func foundation(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Array(try encoder.encode(value))
  }

  private static func text(_ value: some Encodable) throws -> String {
    String(decoding: try JSON(encoding: value, by: .document).line, as: UTF8.self)
  }

  private static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    try #require(JSON(Array(text.utf8)), "\(text)").decode(type, by: .document)
  }

  @Test("Encoded values are the bytes of Foundation's encoder, and read back as the same values")
  func sameAsFoundation() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    for round in 0..<300 {
      let value = RandomValue(depth: round % 3, using: &random)
      let expected = try Self.foundation(value)
      let bytes = try JSON(encoding: value, by: .document).line
      if bytes != expected {
        let place = zip(bytes, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
        let texts = [bytes, expected].map {
          String(decoding: $0.dropFirst(max(0, place - 100)).prefix(160), as: UTF8.self)
        }
        Issue.record("seed \(seed), round \(round), byte \(place):\n\(texts[0])\n\(texts[1])")
        return
      }
      let json = try #require(JSON(bytes), "seed \(seed), round \(round)")
      let read = try json.decode(RandomValue.self, by: .document)
      let isSame = read == value
      try #require(isSame, "seed \(seed), round \(round)")
      // The texts are compared too, because -0.0 equals 0.0.
      let again = try JSON(encoding: read, by: .document).line == bytes
      try #require(again, "seed \(seed), round \(round)")
    }
  }

  @Test func `Any text is encoded to the same bytes as by Foundation's encoder`() throws {
    for scalar in (UInt32(0)...0x2100).compactMap(Unicode.Scalar.init) {
      let text = "a\(scalar)b"
      #expect(try JSON(encoding: [text], by: .document).line == Self.foundation([text]))
    }
  }

  @Test(
    "Numbers are written as the shortest text that reads back as the same number",
    arguments: [
      (0.1, "0.1"), (1, "1"), (-0.0, "-0"), (1e15, "1000000000000000"),
      (0x1p53, "9007199254740992"),
      (0x1p54, "1.8014398509481984e+16"), (1e22, "1e+22"), (.leastNonzeroMagnitude, "5e-324"),
      (1.5, "1.5"),
      (1.0 / 3, "0.3333333333333333"),
    ])
  func doubles(value: Double, text: String) throws {
    #expect(try Self.text([value]) == "[\(text)]")
    #expect(try Self.decode([Double].self, "[\(text)]")[0].bitPattern == value.bitPattern)
  }

  @Test func `Whole numbers of 64 bits stay exact, with and without a sign`() throws {
    #expect(try Self.text([UInt64.max]) == "[18446744073709551615]")
    #expect(try Self.decode([UInt64].self, "[18446744073709551615]") == [.max])
    #expect(try Self.text([Int64.min, .max]) == "[-9223372036854775808,9223372036854775807]")
    #expect(try Self.decode([Int64].self, "[-9223372036854775808]") == [.min])
    #expect(JSON(Array("9223372036854775807".utf8)) == .int(.max))
    #expect(JSON(Array("9223372036854775808".utf8)) == .unsigned(1 << 63))
    // Foundation reads these numbers as integers, too.
    #expect(try Self.decode([Int].self, "[1.0, 2e2, -0]") == [1, 200, 0])
  }

  private struct Maybe: Codable {
    var bool: Bool?
    var string: String?
    var double: Double?
    var float: Float?
    var int: Int?
    var int8: Int8?
    var int16: Int16?
    var int32: Int32?
    var int64: Int64?
    var uint: UInt?
    var uint8: UInt8?
    var uint16: UInt16?
    var uint32: UInt32?
    var uint64: UInt64?
    var list: [Int]?
  }

  @Test func `Values that are nil are left out, or written as null if the rules say so`() throws {
    #expect(try Self.text(Maybe()) == "{}")
    let rules = JSONCodingRules(
      writesNil: true, shortensWholeDoubles: false, permitsNonFinite: true)
    guard case .object(let members) = try JSON(encoding: Maybe(), by: rules) else {
      Issue.record("it is no object")
      return
    }
    #expect(members.count == 15)
    #expect(members.allSatisfy { $0.value == .null })
    let infinity = try JSON(encoding: [Double.infinity, 2], by: rules)
    #expect(String(decoding: infinity.line, as: UTF8.self) == #"["inf",2.0]"#)
    #expect(
      try #require(JSON(infinity.line)).decode([Double].self, by: rules) == [.infinity, 2])
  }

  @Test func `A Float is written as its own shortest text`() throws {
    #expect(try Self.text([Float(0.1), 3, -2.5]) == "[0.1,3,-2.5]")
    #expect(try Self.decode([Float].self, "[0.1, 3]") == [0.1, 3])
  }

  private struct Refused: Decodable {
    var id: UInt8 = 0
    var inner: Inner?
    struct Inner: Decodable { var list: [Bool] }
  }

  @Test(
    "Values that don't fit are refused with their place",
    arguments: [
      ("{}", "id", "missing"), (#"{"id":"1"}"#, "id", "type"), (#"{"id":null}"#, "id", "null"),
      (#"{"id":256}"#, "id", "range"), (#"{"id":-1}"#, "id", "range"),
      (#"{"id":1.5}"#, "id", "range"), ("[]", "", "type"), ("null", "", "null"),
      (#"{"id":1,"inner":{}}"#, "inner.list", "missing"),
      (#"{"id":1,"inner":{"list":[true,0]}}"#, "inner.list.1", "type"),
      (#"{"id":1,"inner":{"list":{}}}"#, "inner.list", "type"),
      (#"{"id":1,"inner":{"list":[null]}}"#, "inner.list.0", "null"),
    ])
  func refused(text: String, place: String, why: String) throws {
    let error = #expect(throws: DecodingError.self) { try Self.decode(Refused.self, text) }
    switch error {
    case .keyNotFound(let key, let context):
      #expect(((context.codingPath + [key]).dotted, why) == (place, "missing"))
    case .typeMismatch(_, let context): #expect((context.codingPath.dotted, why) == (place, "type"))
    case .valueNotFound(_, let context):
      #expect((context.codingPath.dotted, why) == (place, "null"))
    case .dataCorrupted(let context):
      #expect((context.codingPath.dotted, why) == (place, "range"))
      #expect(context.underlyingError is JSONMisfit)
    default: Issue.record("\(String(describing: error))")
    }
  }

  @Test func `Keys that the type doesn't know are ignored`() throws {
    let value = try Self.decode(Refused.self, #"{"new":[{"a":1}],"id":7,"inner":null}"#)
    #expect(value.id == 7 && value.inner == nil)
  }

  private struct Wide: Codable, Equatable { var values: [String: Int] }

  @Test func `An object of ten thousand members is read, in whatever order they come`() throws {
    let values = Dictionary(uniqueKeysWithValues: (0..<10_000).map { ("key \($0)", $0) })
    let members = values.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
    #expect(try Self.decode(Wide.self, "{\"values\":{\(members)}}").values == values)
    #expect(JSON(Array("{\(members),\"key 17\":0}".utf8)) == nil)
  }

  @Test func `Numbers that JSON can't express are refused with their place`() {
    for value in [Double.infinity, -.infinity, .nan] {
      let error = #expect(throws: EncodingError.self) { try Self.text(["a": [1, value]]) }
      guard case .invalidValue(_, let context) = error else { continue }
      #expect(context.codingPath.dotted == "a.1")
    }
  }

  private class Base: Codable {
    var base: Int
    init(base: Int) { self.base = base }
  }

  private final class Derived: Base {
    var own: String
    init(base: Int, own: String) {
      self.own = own
      super.init(base: base)
    }
    private enum Keys: CodingKey { case own }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      own = try container.decode(String.self, forKey: .own)
      try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(own, forKey: .own)
      try super.encode(to: container.superEncoder())
    }
  }

  @Test("A class has its superclass's part under `super`")
  func superclass() throws {
    let value = Derived(base: 3, own: "o")
    let text = try Self.text(value)
    #expect(text == #"{"own":"o","super":{"base":3}}"#)
    #expect(Array(text.utf8) == (try Self.foundation(value)))
    let read = try Self.decode(Derived.self, text)
    #expect(read.base == 3 && read.own == "o")
  }

  /// A type that requests containers within containers, and a second container of the same object.
  private struct Handmade: Codable, Equatable {
    var numbers: [Int]
    private enum Keys: CodingKey { case outer, pairs, last, more }

    init(numbers: [Int]) { self.numbers = numbers }

    func encode(to encoder: any Encoder) throws {
      var top = encoder.container(keyedBy: Keys.self)
      var outer = top.nestedContainer(keyedBy: Keys.self, forKey: .outer)
      var pairs = outer.nestedUnkeyedContainer(forKey: .pairs)
      for number in numbers {
        var pair = pairs.nestedContainer(keyedBy: Keys.self)
        try pair.encode(number, forKey: .last)
        var more = pairs.nestedUnkeyedContainer()
        try more.encodeNil()
        try more.encode(contentsOf: [number, number])
      }
      var again = encoder.container(keyedBy: Keys.self)
      try again.encodeNil(forKey: .last)
      try again.encode([String: Int](), forKey: .more)
    }

    init(from decoder: any Decoder) throws {
      let top = try decoder.container(keyedBy: Keys.self)
      let outer = try top.nestedContainer(keyedBy: Keys.self, forKey: .outer)
      var pairs = try outer.nestedUnkeyedContainer(forKey: .pairs)
      numbers = []
      while !pairs.isAtEnd {
        let pair = try pairs.nestedContainer(keyedBy: Keys.self)
        numbers.append(try pair.decode(Int.self, forKey: .last))
        var more = try pairs.nestedUnkeyedContainer()
        guard try more.decodeNil(), try !more.decodeNil(), try more.decode(Int.self) == numbers.last
        else { throw JSONMisfit.wrongType }
      }
      guard try top.decodeNil(forKey: .last) else { throw JSONMisfit.wrongType }
    }
  }

  @Test("A value may ask for containers within containers, and for the same one again")
  func containers() throws {
    let value = Handmade(numbers: [4, 5])
    let bytes = try JSON(encoding: value, by: .document).line
    #expect(bytes == (try Self.foundation(value)))
    #expect(try Self.decode(Handmade.self, String(decoding: bytes, as: UTF8.self)) == value)
  }
}
