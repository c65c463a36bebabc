import JSONLines

extension JSON {
  static func message(_ type: String, _ fields: (String, JSON)...) -> JSON {
    message(type, fields)
  }

  static func message(_ type: String, _ fields: [(String, JSON)]) -> JSON {
    .object([Member("type", .string(type))] + fields.map { Member($0.0, $0.1) })
  }

  /// Ids are counted from 1 on, and never reach the sign bit.
  static func id(_ id: UInt64) -> JSON { .int(Int64(clamping: id)) }
}

/// The keys of a line, read by name and type.
struct MessageFields {
  let type: String
  private let object: JSON

  init(_ line: [UInt8]) throws(WorkerMessageError) {
    guard let object = JSON(line), case .object = object else {
      throw WorkerMessageError("it isn't a JSON object")
    }
    guard let type = object["type"]?.text else {
      throw WorkerMessageError("`type` is missing, or isn't a text")
    }
    self.object = object
    self.type = type
  }

  func has(_ key: String) -> Bool { object[key] != nil }

  func text(_ key: String) throws(WorkerMessageError) -> String {
    guard let value = object[key]?.text else { throw missing(key, "a text") }
    return value
  }

  /// Returns a text that isn't empty.
  func name(_ key: String) throws(WorkerMessageError) -> String {
    let value = try text(key)
    guard !value.isEmpty else { throw missing(key, "a text") }
    return value
  }

  func integer(_ key: String) throws(WorkerMessageError) -> Int64 {
    guard let value = object[key]?.integer else { throw missing(key, "a whole number") }
    return value
  }

  func number(_ key: String) throws(WorkerMessageError) -> Double {
    guard let value = object[key]?.number else { throw missing(key, "a number") }
    return value
  }

  func flag(_ key: String) throws(WorkerMessageError) -> Bool {
    guard case .bool(let value) = object[key] else { throw missing(key, "true or false") }
    return value
  }

  func id() throws(WorkerMessageError) -> UInt64 {
    guard let id = UInt64(exactly: try integer("id")) else { throw missing("id", "from 0 on") }
    return id
  }

  /// Returns the time limit: `nil` if the line has none, or a number of seconds that isn't
  /// negative.
  func limit() throws(WorkerMessageError) -> Double? {
    guard has("limitSeconds"), object["limitSeconds"] != .null else { return nil }
    let value = try number("limitSeconds")
    guard value >= 0, value.isFinite else { throw missing("limitSeconds", "from 0 on") }
    return value
  }

  private func missing(_ key: String, _ what: String) -> WorkerMessageError {
    WorkerMessageError("`\(type)`: `\(key)` is missing, or isn't \(what)")
  }
}
