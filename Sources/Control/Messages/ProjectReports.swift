/// One project, or the user's daemon without a project (`ls`). Sizes are in bytes.
public struct ProjectReport: Codable, Hashable, Sendable {
  /// The project's name; nil for the user's own daemon.
  public var name: String?
  /// Distinguishes projects of the same name.
  public var id: String?
  public var directory: String?
  public var stateDirectory: String?
  public var socket: String
  public var isRunning = false
  /// The number of its workers; nil if its daemon doesn't run or doesn't answer.
  public var workers: Int?
  /// The sum of the footprints of its workers; nil if its daemon doesn't answer.
  public var footprint: Int64?
  /// The bytes that hibernation saves now in its workers; nil if its daemon doesn't answer.
  public var saved: Int64?

  public init(name: String?, socket: String) {
    self.name = name
    self.socket = socket
  }
}

/// The output of `ls --json`.
public struct ProjectsReport: Codable, Hashable, Sendable {
  public var projects: [ProjectReport]

  public init(projects: [ProjectReport]) { self.projects = projects }
}
