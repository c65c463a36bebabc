/// A value with every kind of member that Swift's own types encode as JSON.
struct RandomValue: Codable, Equatable {
  enum Kind: Codable, Equatable {
    case plain
    case labelled(name: String, number: Int?)
    case unlabelled(Double, [Bool])
  }

  enum Word: String, Codable, CaseIterable { case one, two = "t/w\"o" }

  var truth: Bool
  var text: String
  var small: Int8
  var byte: UInt8
  var short: Int16
  var ushort: UInt16
  var medium: Int32
  var umedium: UInt32
  var whole: Int
  var uwhole: UInt
  var long: Int64
  var ulong: UInt64
  var double: Double
  var maybeText: String?
  var maybeNumber: UInt64?
  var maybeDouble: Double?
  var kind: Kind
  var word: Word
  var doubles: [Double]
  var holes: [Int?]
  var names: [String: Double]
  var numbered: [Int: String]
  var matrix: [[UInt64]]
  var children: [RandomValue]
  var named: [String: RandomValue]

  init(depth: Int, using random: inout some RandomNumberGenerator) {
    truth = .random(using: &random)
    text = Self.text(&random)
    small = Self.number(&random)
    byte = Self.number(&random)
    short = Self.number(&random)
    ushort = Self.number(&random)
    medium = Self.number(&random)
    umedium = Self.number(&random)
    whole = Self.number(&random)
    uwhole = Self.number(&random)
    long = Self.number(&random)
    ulong = Self.number(&random)
    double = Self.double(&random)
    maybeText = .random(using: &random) ? Self.text(&random) : nil
    maybeNumber = .random(using: &random) ? Self.number(&random) : nil
    maybeDouble = .random(using: &random) ? Self.double(&random) : nil
    kind =
      switch Int.random(in: 0..<3, using: &random) {
      case 0: .plain
      case 1: .labelled(name: Self.text(&random), number: Bool.random(using: &random) ? 7 : nil)
      default: .unlabelled(Self.double(&random), [true, false])
      }
    word = Word.allCases.randomElement(using: &random) ?? .one
    doubles = Self.list(&random) { Self.double(&$0) }
    holes = Self.list(&random) { Bool.random(using: &$0) ? Self.number(&$0) : nil }
    names = Self.map(&random) { Self.double(&$0) }
    numbered = Dictionary(
      Self.list(&random) { (Self.number(&$0), Self.text(&$0)) }, uniquingKeysWith: { $1 })
    matrix = Self.list(&random) { Self.list(&$0) { Self.number(&$0) } }
    children = depth == 0 ? [] : Self.list(&random) { Self(depth: depth - 1, using: &$0) }
    named = depth == 0 ? [:] : Self.map(&random) { Self(depth: depth - 1, using: &$0) }
  }

  static func number<Number: FixedWidthInteger>(
    _ random: inout some RandomNumberGenerator
  ) -> Number {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: .max
    case 1: .min
    case 2: Number(Int.random(in: 0...20, using: &random))
    default: .random(in: .min ... .max, using: &random)
    }
  }

  /// Returns finite numbers of every size, and those at which the text changes its form.
  static func double(_ random: inout some RandomNumberGenerator) -> Double {
    let value: Double =
      switch Int.random(in: 0..<8, using: &random) {
      case 0: Double(Int.random(in: -1000...1000, using: &random))
      case 1: Double(Int.random(in: -1_000_000...1_000_000, using: &random)) / 1000
      case 2: .random(in: 0..<1, using: &random)
      case 3:
        [
          0, -0.0, .greatestFiniteMagnitude, .leastNonzeroMagnitude, .leastNormalMagnitude, 0x1p53,
          0x1p53 - 1, 0x1p53 + 2, 0x1p54 - 2, 0x1p54, 0x1p54 + 4, 0x1p62, 0x1p63, -0x1p63, 0x1p64,
          1e15,
          1e16, 1e17, 1e21, 0.1, 0.0001, 0.00001, 1e-7, 123_456_789_012_345_680,
        ].randomElement(using: &random) ?? 0
      case 4: Double(Int64.random(in: .min ... .max, using: &random))
      case 5: Double(1 << Int.random(in: 0..<62, using: &random))
      default: Double(bitPattern: .random(in: .min ... .max, using: &random))
      }
    return value.isFinite ? value : 1
  }

  static func text(_ random: inout some RandomNumberGenerator) -> String {
    let pools: [ClosedRange<UInt32>] = [
      0x20...0x7E, 0x20...0x7E, 0x61...0x63, 0...0x1F, 0x22...0x22, 0x5C...0x5C, 0x2F...0x2F,
      0x7F...0xFF,
      0x300...0x30F, 0x2028...0x2029, 0x4E00...0x4E20, 0xD7FF...0xD7FF, 0xE000...0xE000,
      0xFFFE...0xFFFF, 0x1F600...0x1F610, 0x10FFFF...0x10FFFF,
    ]
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...12, using: &random) {
      let pool = pools.randomElement(using: &random) ?? 0x20...0x7E
      if let scalar = Unicode.Scalar(UInt32.random(in: pool, using: &random)) {
        text.append(scalar)
      }
    }
    return String(text)
  }

  private static func list<Element, Random: RandomNumberGenerator>(
    _ random: inout Random, _ element: (inout Random) -> Element
  ) -> [Element] {
    (0..<Int.random(in: 0...4, using: &random)).map { _ in element(&random) }
  }

  private static func map<Value, Random: RandomNumberGenerator>(
    _ random: inout Random, _ value: (inout Random) -> Value
  ) -> [String: Value] {
    Dictionary(list(&random) { (text(&$0), value(&$0)) }, uniquingKeysWith: { $1 })
  }
}

/// The generator SplitMix64 (Steele, Lea and Flood, 2014). The same seed gives the same values.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
