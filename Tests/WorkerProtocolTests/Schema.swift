import JSONLines

/// The part of JSON Schema (2020-12) that docs/worker-protocol.schema.json needs.
struct Schema {
  let root: JSON

  /// Keywords that check nothing.
  static let remarks: Set<String> = ["$schema", "$defs", "title", "description"]
  /// Returns the error in a value; nil if the value is valid.
  func problem(_ value: JSON, at definition: String? = nil) -> String? {
    problem(
      value, definition.map { .object([JSON.Member("$ref", .string("#/$defs/\($0)"))]) } ?? root)
  }

  private func problem(_ value: JSON, _ schema: JSON) -> String? {
    guard case .object(let members) = schema else { return "\(schema) is no schema" }
    for member in members {
      if let problem = problem(value, member.name, member.value, schema) { return problem }
    }
    return nil
  }

  private func problem(
    _ value: JSON, _ keyword: String, _ argument: JSON, _ schema: JSON
  ) -> String? {
    switch keyword {
    case "$ref":
      let name = (argument.text ?? "").split(separator: "/").last.map(String.init) ?? ""
      guard let definition = root["$defs"]?[name] else { return "no definition \(name)" }
      return problem(value, definition)
    case "anyOf":
      let fits = (argument.elements ?? []).contains { problem(value, $0) == nil }
      return fits ? nil : "none of the alternatives fits"
    case "type":
      let types = argument.elements ?? [argument]
      return types.contains { Self.isOf($0.text ?? "", value) } ? nil : "not of type \(types)"
    case "const": return value == argument ? nil : "not \(argument)"
    case "enum": return argument.elements?.contains(value) == true ? nil : "none of \(argument)"
    case "properties":
      guard case .object(let properties) = argument else { return "no properties" }
      for property in properties {
        guard let member = value[property.name] else { continue }
        if let problem = problem(member, property.value) { return "\(property.name): \(problem)" }
      }
      return nil
    case "required":
      let missing = (argument.elements ?? []).first { value[$0.text ?? ""] == nil }
      return missing.map { "\($0) is missing" }
    case "minimum":
      guard let number = value.number, let minimum = argument.number else { return nil }
      return number >= minimum ? nil : "less than \(minimum)"
    case "minLength", "maxLength":
      guard let text = value.text, let limit = argument.integer else { return nil }
      let length = Int64(text.unicodeScalars.count)
      return keyword == "minLength"
        ? (length >= limit ? nil : "too short")
        : (length <= limit ? nil : "too long")
    default: return Self.remarks.contains(keyword) ? nil : "unknown keyword \(keyword)"
    }
  }

  private static func isOf(_ type: String, _ value: JSON) -> Bool {
    switch (type, value) {
    case ("object", .object), ("string", .string), ("boolean", .bool), ("null", .null),
      ("integer", .int), ("number", .int), ("number", .double):
      true
    default: false
    }
  }
}
