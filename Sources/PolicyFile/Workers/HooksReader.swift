import Policy
import YAML

/// Reads `on:`.
struct HooksReader {
  /// Of one worker: some events aren't.
  var isOfWorker: Bool

  func read(_ reader: MappingReader) -> Hooks {
    var hooks = Hooks(directory: reader.directory)
    for event in Hooks.Event.allCases {
      if isOfWorker, event.isOfMachine {
        refuse(event, reader)
      } else if let found = reader.commands.readSeveral(event.rawValue, in: reader), !found.isEmpty
      {
        hooks.commands[event] = found
      }
    }
    reader.read("timeout", into: &hooks.timeout, as: Self.timeout)
    return hooks
  }

  private func refuse(_ event: Hooks.Event, _ reader: MappingReader) {
    guard let position = reader.refused(event.rawValue) else { return }
    reader.sink.error(
      at: position, "`\(event.rawValue)` is no event of one worker",
      suggestion: event == .jetsam
        ? "write `\(Hooks.Event.terminatedForMemory.rawValue)`"
        : "move it to `on` at the top of the file")
  }

  private static var timeout: Converter<Duration> {
    .duration.checked {
      (.seconds(1)...(.seconds(600))).contains($0)
        ? nil : Problem(message: "must be between `1s` and `10m`")
    }
  }
}

extension CommandReader {
  /// A command, or a list of commands of which the first is a list itself.
  func readSeveral(_ key: String, in reader: MappingReader) -> [[String]]? {
    if let shape = reader.shape {
      shape.add(key, .either([.text, .list(.either([.text, .list(.text)]))]))
      return nil
    }
    guard let node = reader.node(key) else { return nil }
    guard case .sequence(let items) = node,
      items.contains(where: { if case .sequence = $0 { true } else { false } })
    else { return read(node, called: key, in: reader).map { [$0] } }
    return items.compactMap { read($0, called: key, in: reader) }
  }
}
