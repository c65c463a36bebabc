/// A text that is one YAML document.
public struct YAMLDocument: Sendable {
  /// `nil` if the text has only comments.
  public internal(set) var root: YAMLNode?
  /// Keys that occur more than once in their mapping, in the order of the text; the first hundred.
  public internal(set) var duplicates: [Duplicate] = []

  public struct Duplicate: Hashable, Sendable {
    public var key: String
    public var first: YAMLMark
    /// The place of the second, third or later one.
    public var mark: YAMLMark
  }

  init() {}

  /// Composes any text in linear time and space, or throws. The caller limits the length of the
  /// text.
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
