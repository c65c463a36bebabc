/// A configuration file of a host, and what was done with it.
public struct FileOutcome: Sendable {
  public let host: IntegratedHost
  public let path: String
  public let isOfProject: Bool
  /// The path after all links were followed.
  public internal(set) var target: String?
  public internal(set) var problem: FileProblem?
  public internal(set) var servers: [ServerOutcome] = []
  public internal(set) var hasBackup = false
  public internal(set) var isChanged = false
  var edit: FileEdit?

  init(_ file: HostFile, problem: FileProblem? = nil) {
    host = file.host
    path = file.path
    isOfProject = file.isOfProject
    self.problem = problem
  }

  /// Records that the file, and so its servers, stay as they were.
  mutating func fail(_ failure: FileProblem) {
    problem = failure
    edit = nil
    for index in servers.indices {
      switch servers[index].state {
      case .newlyWrapped: servers[index].state = .notWrapped
      case .unwrapped: servers[index].state = .wrapped
      case .notWrapped, .wrapped: break
      }
    }
  }

  /// The lines that would change, or have changed.
  public var difference: [String] {
    edit.map { Difference(old: $0.old.bytes, edits: $0.edits).lines } ?? []
  }
}

/// A server, and what was done with its command.
public struct ServerOutcome: Sendable {
  public enum State: String, Sendable {
    case notWrapped = "not_wrapped"
    case wrapped
    case newlyWrapped = "newly_wrapped"
    case unwrapped
  }

  public let name: String
  public let project: String?
  public internal(set) var state = State.notWrapped
  /// The command without `dormouse wrap`. It is empty if the file has none.
  public internal(set) var command: [String] = []
  public internal(set) var refusal: Refusal?
  /// True if the command is wrapped, and wasn't before `dormouse integrate`.
  var isOurs = false
}

/// A planned change of a file.
struct FileEdit: Sendable {
  var file: ConfigFile
  var old: ConfigDocument
  var new: ConfigDocument
  var edits: [TextEdit]
  var change: Integration.Change
  /// True if no command in the file is wrapped yet.
  var isFirst: Bool
  /// True if no command is wrapped afterwards.
  var isLast: Bool
}
