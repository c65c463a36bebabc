import JSONLines
import Lifecycle
import Policy

/// Writes the members of a record in an order that is easy to read.
struct FieldWriter {
  private(set) var members: [JSON.Member] = []

  mutating func set(_ name: String, _ value: JSON) { members.append(JSON.Member(name, value)) }
  mutating func set(_ name: String, _ value: String) { set(name, .string(value)) }
  mutating func set(_ name: String, _ value: Bool) { set(name, .bool(value)) }
  mutating func set(_ name: String, _ value: Int64) { set(name, .int(value)) }
  mutating func set(_ name: String, _ value: ByteCount) { set(name, .int(value.bytes)) }
  mutating func set(_ name: String, _ value: Instant) { set(name, .int(value.nanoseconds)) }
  mutating func set(_ worker: WorkerID) { set("w", .string(worker.name)) }
  /// Writes any other value. A nil is left out.
  mutating func set(_ name: String, coded value: (some Encodable)?) throws {
    if let value { set(name, try JSON(encoding: value)) }
  }
  var object: JSON { .object(members) }
}

/// Reads the members of a record. An error names the member that is missing or of another kind.
struct FieldReader {
  let record: JSON

  private func value(_ name: String) throws -> JSON {
    guard let value = record[name] else { throw JournalMismatch("is missing", at: name) }
    return value
  }

  func text(_ name: String) throws -> String {
    guard let text = try value(name).text else {
      throw JournalMismatch("isn't a text", at: name)
    }
    return text
  }
  func integer(_ name: String) throws -> Int64 {
    guard let number = try value(name).integer else {
      throw JournalMismatch("isn't a whole number", at: name)
    }
    return number
  }
  func boolean(_ name: String) throws -> Bool {
    guard case .bool(let boolean) = try value(name) else {
      throw JournalMismatch("isn't true or false", at: name)
    }
    return boolean
  }
  func bytes(_ name: String) throws -> ByteCount { ByteCount(try integer(name)) }
  func instant(_ name: String) throws -> Instant { Instant(nanoseconds: try integer(name)) }
  func worker() throws -> WorkerID { WorkerID(try text("w")) }

  func coded<Value: Decodable>(_ name: String, as type: Value.Type) throws -> Value {
    do { return try value(name).decode(type) } catch let mismatch as JournalMismatch {
      throw JournalMismatch("\(name): \(mismatch)")
    }
  }
  func optional<Value: Decodable>(_ name: String, as type: Value.Type) throws -> Value? {
    record[name] == nil ? nil : try coded(name, as: type)
  }
}
