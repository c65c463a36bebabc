/// Settings that would let a worker sleep, or sleep sooner, as lines to paste into a configuration.
public struct RemedyReport: Codable, Hashable, Sendable {
  /// The effect, as a clause whose subject is the worker.
  public var text: String
  /// The keys to set; empty if no key helps.
  public var settings: [Setting]
  /// The line or lines for the file; nil if no key helps.
  public var line: String?
  /// The section in which the lines belong: "in /etc/dormouse/dormouse.yaml, under `web:` of
  /// `workers:`".
  public var place: String?
  public var file: String?
  /// The line number of the entry under which the lines belong.
  public var fileLine: Int?
  /// A command that has the same effect once.
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
