import Policy

/// The rule for a worker's name. It is the same as in the configuration.
enum WorkerName {
  static func problem(with name: String) -> String? {
    NameRule.allows(name) ? nil : "use \(NameRule.text)"
  }
}
