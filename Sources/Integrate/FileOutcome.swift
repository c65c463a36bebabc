import Control

/// What is known of a host's file, and what happened to it.
public struct FileOutcome: Sendable {
  public let host: IntegratedHost
  public let path: String
  public let isOfProject: Bool
  /// The path without links.
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

  /// The file stays as it was, and so do its servers.
  mutating func fail(_ why: FileProblem) {
    problem = why
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

/// What is known of a server, and what happened to its command.
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
  /// Without `dormouse wrap`; empty: none is known.
  public internal(set) var command: [String] = []
  public internal(set) var refusal: Refusal?
  /// It is wrapped, and wasn't before `dormouse integrate`.
  var isOurs = false

  init(name: String, project: String?) {
    self.name = name
    self.project = project
  }
}

/// A planned change of a file.
struct FileEdit: Sendable {
  var file: ConfigFile
  var old: ConfigDocument
  var new: ConfigDocument
  var edits: [TextEdit]
  var change: Integration.Change
  /// No command in the file is wrapped yet.
  var isFirst: Bool
  /// No command is wrapped afterwards.
  var isLast: Bool
}
