/// What would let a worker sleep, or sleep sooner: values for keys of its policy, as a line to paste.
public struct RemedyReport: Codable, Hashable, Sendable {
  /// What happens then; a clause whose subject is the worker.
  public var text: String
  /// Empty: no key helps.
  public var settings: [Setting]
  /// The line for the file, or lines; nil: no key helps.
  public var line: String?
  /// Where it belongs: "in /etc/dormouse/dormouse.yaml, under `web:` of `workers:`".
  public var place: String?
  public var file: String?
  /// Of the entry under which the line belongs.
  public var fileLine: Int?
  /// A command that does the same once.
  public var command: String?

  public struct Setting: Codable, Hashable, Sendable {
    public var key: String
    public var value: String

    public init(key: String, value: String) {
      self.key = key
      self.value = value
    }
  }

  public init(text: String, settings: [Setting] = [], command: String? = nil) {
    self.text = text
    self.settings = settings
    self.command = command
  }
}
