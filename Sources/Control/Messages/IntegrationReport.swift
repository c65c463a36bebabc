/// The output of `integrate --json`.
public struct IntegrationReport: Codable, Hashable, Sendable {
  /// The code is `listed`, `planned`, `done`, `nothing_to_do`, or that of the first file that can't
  /// be changed.
  public var code: String
  public var text: String
  /// The arguments that are put before a command.
  public var words: [String]
  public var files: [File]
  /// The text to write by hand into the configuration of hosts that are configured by a program.
  public var snippets: [Snippet]

  public struct File: Codable, Hashable, Sendable {
    public var host: String
    public var path: String
    /// Why the file can't be read or changed.
    public var problem: CodedText?
    /// The line of `problem`, if it concerns a position in the file. It counts from 1.
    public var line: Int?
    /// The column of `problem`. It counts from 1.
    public var column: Int?
    public var isChanged: Bool
    /// The lines that changed, or that would change (`--dry-run`).
    public var difference: [String]
    public var servers: [Server]

    public init(
      host: String, path: String, problem: CodedText?, line: Int?, column: Int?, isChanged: Bool,
      difference: [String], servers: [Server]
    ) {
      self.host = host
      self.path = path
      self.problem = problem
      self.line = line
      self.column = column
      self.isChanged = isChanged
      self.difference = difference
      self.servers = servers
    }
  }

  public struct Server: Codable, Hashable, Sendable {
    public var name: String
    /// The project that it belongs to, if the file has several.
    public var project: String?
    /// The state is `not_wrapped`, `wrapped`, `newly_wrapped` or `unwrapped`.
    public var state: String
    /// The command without `dormouse wrap`; empty if none is known.
    public var command: [String]
    /// Why its command stays as it is.
    public var reason: CodedText?

    public init(
      name: String, project: String?, state: String, command: [String], reason: CodedText?
    ) {
      self.name = name
      self.project = project
      self.state = state
      self.command = command
      self.reason = reason
    }
  }

  public struct Snippet: Codable, Hashable, Sendable {
    public var host: String
    public var text: String

    public init(host: String, text: String) {
      self.host = host
      self.text = text
    }
  }

  public init(
    code: String, text: String, words: [String], files: [File], snippets: [Snippet]
  ) {
    self.code = code
    self.text = text
    self.words = words
    self.files = files
    self.snippets = snippets
  }
}
