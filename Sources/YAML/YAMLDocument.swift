/// A text that is one YAML document.
public struct YAMLDocument: Sendable {
  /// The document's value. `nil` if the text has only comments.
  public internal(set) var root: YAMLNode?
  /// The first hundred keys that occur more than once in their mapping, in the order of the text.
  public internal(set) var duplicates: [Duplicate] = []

  public struct Duplicate: Hashable, Sendable {
    public var key: String
    public var first: YAMLMark
    /// The position of the second, third or later one.
    public var mark: YAMLMark
  }

  init() {}

  /// Parses a text in linear time and space. The caller limits the length of the text.
  ///
  /// - Throws: `YAMLError` for a text that isn't one document or exceeds a limit.
  public init(parsing text: String) throws(YAMLError) {
    let events = try YAMLEventReader(text)
    var composer = YAMLComposer()
    while true {
      if let document = try composer.add(events.next()) {
        self = document
        return
      }
    }
  }
}
