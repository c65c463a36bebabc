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
    try Self.checkTagDirectives(in: text)
    let events = try YAMLEventReader(text)
    var composer = YAMLComposer()
    while true {
      if let document = try composer.add(events.next()) {
        self = document
        return
      }
    }
  }

  private static let tagDirectivesLimit = 100

  /// Counts `%TAG` at the beginning of lines; in a block of text that isn't indented, too.
  private static func checkTagDirectives(in text: String) throws(YAMLError) {
    let sign = Array("%TAG".utf8)
    var count = 0
    var matched = 0
    var last: UInt8 = 0
    for byte in text.utf8 {
      // Every end of a line, and the mark of the byte order, is a control character or not ASCII.
      let mayBegin = matched > 0 || last < 0x20 || last >= 0x80
      matched = mayBegin && byte == sign[matched] ? matched + 1 : 0
      if matched == sign.count {
        count += 1
        matched = 0
      }
      last = byte
    }
    guard count <= tagDirectivesLimit else { throw .tagDirectives(limit: tagDirectivesLimit) }
  }
}
