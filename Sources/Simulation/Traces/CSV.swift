/// Splits a stream of bytes into rows of comma-separated fields (RFC 4180, without line breaks in
/// quotes). It holds one row at a time, because traces are too large for memory.
struct CSVSplitter {
  let file: String
  private var buffer: [UInt8] = []
  private var start = 0
  private var line = 0
  private var isFinished = false

  /// The maximum length of a line in bytes. No line of a trace is longer: 1,440 minutes of ten
  /// digits are 16 KB.
  static let maxLine = 1 << 20

  init(file: String) { self.file = file }

  mutating func feed(_ bytes: [UInt8]) {
    if start > 0 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer += bytes
  }

  /// Declares the remaining bytes a line, although no line break follows.
  mutating func finish() { isFinished = true }

  /// Returns the next row that isn't empty. `nil`: more bytes are needed, or there are no more.
  mutating func next() throws(TraceError) -> CSVRow? {
    while true {
      let end = buffer[start...].firstIndex(of: 10)
      guard let end = end ?? (isFinished && start < buffer.count ? buffer.count : nil) else {
        guard buffer.count - start <= Self.maxLine else {
          throw TraceError(
            file: file, line: line + 1, what: "a line of more than 1 MB: not a trace")
        }
        return nil
      }
      line += 1
      var bytes = buffer[start..<end]
      start = min(end + 1, buffer.count)
      if bytes.last == 13 { bytes.removeLast() }
      if line == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
      if !bytes.isEmpty { return try CSVRow(file: file, line: line, Array(bytes)) }
    }
  }
}

/// One row. Its fields are read without being copied first.
struct CSVRow {
  let file: String
  let line: Int
  private let bytes: [UInt8]
  private var fields: [Range<Int>] = []

  init(file: String, line: Int, _ bytes: [UInt8]) throws(TraceError) {
    (self.file, self.line, self.bytes) = (file, line, bytes)
    var start = 0
    var isQuoted = false
    for (index, byte) in bytes.enumerated() {
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if byte == UInt8(ascii: ","), !isQuoted {
        fields.append(start..<index)
        start = index + 1
      }
    }
    fields.append(start..<bytes.count)
    if isQuoted {
      throw TraceError(
        file: file, line: line, column: start + 1, what: "a quote without its end on the same line")
    }
  }

  var count: Int { fields.count }

  /// Returns a field as text, without its quotes.
  func text(_ field: Int) throws(TraceError) -> String {
    guard field < fields.count else { throw missing(field) }
    var content = bytes[fields[field]]
    guard content.first == UInt8(ascii: "\""), content.last == UInt8(ascii: "\""), content.count > 1
    else {
      return String(decoding: content, as: UTF8.self)
    }
    content = content.dropFirst().dropLast()
    return String(decoding: content, as: UTF8.self).replacing("\"\"", with: "\"")
  }

  /// Reads a field of digits only. It doesn't make a string, because traces have very many counts.
  func count(_ field: Int) throws(TraceError) -> Int {
    guard field < fields.count else { throw missing(field) }
    var value = 0
    for byte in bytes[fields[field]] {
      guard byte >= 48, byte <= 57, value < 1 << 50 else {
        throw wrong(field, "a whole number")
      }
      value = value * 10 + Int(byte - 48)
    }
    guard !fields[field].isEmpty else { throw wrong(field, "a whole number") }
    return value
  }

  /// Reads a number from zero to `maximum`. No maximum is near a number with which a calculation
  /// could overflow.
  func number(_ field: Int, atMost maximum: Double, _ unit: String = "") throws(TraceError)
    -> Double
  {
    guard let value = Double(try text(field)), value >= 0 else {
      throw wrong(field, "a number of at least 0")
    }
    guard value <= maximum else { throw wrong(field, "at most \(Int64(maximum))\(unit)") }
    return value
  }

  /// Reads a number of bytes, at most 1 TB.
  func bytes(_ field: Int) throws(TraceError) -> Int64 {
    let value = Int64(try count(field))
    guard value <= 1 << 40 else { throw wrong(field, "at most \(Int64(1) << 40) bytes (1 TB)") }
    return value
  }

  /// Reads a number of milliseconds: a time in the trace, or of a launch.
  func time(_ field: Int) throws(TraceError) -> Int64 {
    let value = Int64(try count(field))
    guard value <= TraceLoader.maxLength else {
      throw wrong(field, "at most \(TraceLoader.maxLength) ms (1,000 days)")
    }
    return value
  }

  func wrong(_ field: Int, _ expected: String) -> TraceError {
    let fieldText = String(decoding: bytes[fields[field]].prefix(40), as: UTF8.self)
    let column = fields[field].lowerBound + 1
    let shown = fieldText.isEmpty ? "nothing" : "'\(fieldText.filter { $0 >= " " })'"
    return TraceError(
      file: file, line: line, column: column, what: "expected \(expected), found \(shown)")
  }

  private func missing(_ field: Int) -> TraceError {
    TraceError(
      file: file, line: line, column: bytes.count + 1,
      what: "only \(fields.count) fields; field \(field + 1) is missing")
  }
}

/// A fault of a trace, and its location.
public struct TraceError: Error, Equatable, CustomStringConvertible {
  public var file: String
  /// The number of the line, from 1. 0: the file as a whole.
  public var line: Int = 0
  /// The offset in the line in bytes, from 1. 0: the line as a whole.
  public var column: Int = 0
  public var what: String

  public var description: String {
    var location = file
    if line > 0 { location += ":\(line)" }
    if column > 0 { location += ":\(column)" }
    return "\(location): \(what)"
  }
}
