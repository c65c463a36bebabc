import Policy

extension ConfigurationFile {
  /// Returns a worker's entry as YAML, without keys that have their defaults. Reading it gives an
  /// equal worker, except for its policy.
  public static func render(_ worker: WorkerConfiguration) -> String {
    let usual = WorkerConfiguration(name: worker.name, command: [])
    let lines = WorkerKeys.all.flatMap { key -> [String] in
      guard let value = key.write(worker), value.flow != key.write(usual)?.flow else { return [] }
      return YAMLText.lines(key.name, value, indent: "    ")
    }
    return (["  \(YAMLText.scalar(worker.name)):"] + lines).joined(separator: "\n") + "\n"
  }
}

/// Writes values of a worker's keys as YAML.
enum WorkerRenderer {
  static func asleepAnswer(_ answer: AsleepAnswer) -> YAMLText {
    let port = YAMLText.plain("\(answer.port)")
    return answer.path.map { .mapping([("port", port), ("path", escaped($0))]) } ?? port
  }

  static func listen(_ worker: WorkerConfiguration) -> YAMLText {
    let sockets = worker.listen
    guard sockets.contains(where: { $0.name != worker.name }) else {
      return .list(sockets.map { escaped($0.address.text) })
    }
    return .mapping(sockets.map { ($0.name, escaped($0.address.text)) })
  }

  /// Returns a text in which each `$` is escaped.
  static func escaped(_ text: String) -> YAMLText {
    .text(text.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$"))
  }

  static func command(_ arguments: [String]) -> YAMLText {
    .list(arguments.map { .text(escapedWord($0)) })
  }

  /// Returns a word of a command, in which only `${` is special.
  static func escapedWord(_ word: String) -> String {
    word.replacing("${", with: "$${")
  }
}
