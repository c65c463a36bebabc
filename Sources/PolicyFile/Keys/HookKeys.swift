import Policy
import YAML

/// The keys of `on:`, at the top of the file and in a worker's entry.
enum HookKeys {
  /// Returns the keys of all events.
  ///
  /// - Parameter isOfWorker: true for a worker's entry, which has no keys for events of the
  ///   machine.
  static func all(isOfWorker: Bool) -> [Key<Hooks>] {
    let events = Hooks.Event.allCases.filter { !isOfWorker || !$0.isOfMachine }
    return events.map(key) + [timeout]
  }

  /// Reads the section.
  ///
  /// - Parameter isOfWorker: true for a worker's entry, in which the keys for events of the machine
  ///   are refused.
  static func read(_ reader: MappingReader, isOfWorker: Bool) -> Hooks {
    var hooks = Hooks(directory: reader.directory)
    for event in Hooks.Event.allCases where isOfWorker && event.isOfMachine {
      guard let position = reader.refused(event.rawValue) else { continue }
      reader.sink.error(
        at: position, "`\(event.rawValue)` is no event of one worker",
        suggestion: event == .jetsam
          ? "write `\(Hooks.Event.terminatedForMemory.rawValue)`"
          : "move it to `on` at the top of the file")
    }
    all(isOfWorker: isOfWorker).read(reader, into: &hooks)
    return hooks
  }

  private static func key(_ event: Hooks.Event) -> Key<Hooks> {
    let name = event.rawValue
    return Key<Hooks>(
      name, shape: .either([.text, .list(ValueShape.text.orList)]), about: event.about,
      read: { reader, hooks in
        if let commands = reader.commands.readSeveral(name, in: reader), !commands.isEmpty {
          hooks.commands[event] = commands
        }
      },
      write: { hooks in
        guard let commands = hooks.commands[event], let first = commands.first else { return nil }
        return commands.count == 1
          ? WorkerRenderer.command(first) : .list(commands.map(WorkerRenderer.command))
      })
  }

  private static var timeout: Key<Hooks> {
    let time = Converter.duration.checked(kind: "duration, `1s` to `10m`") {
      (.seconds(1)...(.seconds(600))).contains($0)
        ? nil : Problem(message: "must be between `1s` and `10m`")
    }
    return Key<Hooks>(
      "timeout", shape: time.shape, about: "after this a command is ended, 1s to 10m. Default: 10s",
      read: { $0.read("timeout", into: &$1.timeout, as: time) },
      write: { hooks in
        hooks.isEmpty || hooks.timeout == Hooks().timeout ? nil : time.write(hooks.timeout)
      })
  }
}

extension CommandReader {
  /// Reads a command, or a list of commands whose first item is a list itself.
  fileprivate func readSeveral(_ key: String, in reader: MappingReader) -> [[String]]? {
    guard let node = reader.node(key) else { return nil }
    guard case .sequence(let items) = node,
      items.contains(where: { if case .sequence = $0 { true } else { false } })
    else { return read(node, called: key, in: reader).map { [$0] } }
    return items.compactMap { read($0, called: key, in: reader) }
  }
}

extension Hooks.Event {
  fileprivate var about: String {
    switch self {
    case .state: "a worker has changed its state"
    case .failed: "an operation on a worker failed, or the worker crashed"
    case .refused: "a request was refused"
    case .memory: "a worker got a request to free memory, or has freed some"
    case .pressure: "the level of memory pressure has changed"
    case .jetsam: "workers were terminated for lack of memory"
    case .policy: "the configuration has changed"
    case .shadow: "shadow mode: what would have been done"
    case .daemon: "the daemon has started"
    case .launching: "a worker is launched"
    case .foreground: "a worker is in the foreground"
    case .background: "a worker is in the background"
    case .suspended: "a worker was suspended"
    case .hibernated: "a worker was hibernated"
    case .terminated: "a worker has ended, for whatever reason"
    case .woken: "a worker runs again after it slept"
    case .crashed: "a worker has ended with a failure, or because it missed a deadline"
    case .terminatedForMemory: "a worker was terminated for lack of memory"
    case .willTerminate:
      """
      a worker will be terminated for lack of memory, unless it is protected in time \
      (`terminate: ask`)
      """
    case .overLimit: "a worker's footprint was over one of its `limits.footprint`"
    case .leakSuspected: "a worker may lose memory: its footprint was larger at each suspension"
    case .everything: "any event"
    }
  }
}
