/// `ls`: one project, or the daemon without one. Sizes in bytes.
public struct ProjectReport: Codable, Hashable, Sendable {
  /// nil: the user's own daemon.
  public var name: String?
  /// Distinguishes projects of the same name.
  public var id: String?
  public var directory: String?
  public var stateDirectory: String?
  public var socket: String
  public var isRunning = false
  /// Of all its workers; nil: its daemon doesn't run, or doesn't answer.
  public var workers: Int?
  public var footprint: Int64?
  public var saved: Int64?

  public init(name: String?, socket: String) {
    self.name = name
    self.socket = socket
  }
}

/// What `ls --json` prints.
public struct ProjectsReport: Codable, Hashable, Sendable {
  public var projects: [ProjectReport]

  public init(projects: [ProjectReport]) { self.projects = projects }
}
