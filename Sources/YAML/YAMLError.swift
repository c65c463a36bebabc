/// The reason why a text isn't a YAML document or is refused.
public enum YAMLError: Error, Hashable, Sendable {
  /// A character that YAML doesn't allow, and its offset in bytes from the start of the text.
  case character(problem: String, byteOffset: Int)
  case syntax(Syntax)
  /// A collection is inside more than `limit` others.
  case depth(limit: Int, mark: YAMLMark)
  /// The text with all aliases written out would be longer than `limit` bytes.
  case aliases(limit: Int, mark: YAMLMark)
  /// The text has more than `limit` `%TAG` directives. libyaml compares each with all before it,
  /// which takes seconds for a megabyte of them.
  case tagDirectives(limit: Int)
  case outOfMemory

  /// libyaml's message and its positions in the text.
  public struct Syntax: Hashable, Sendable {
    public var problem: String
    public var mark: YAMLMark
    /// The construct that was being read, and its start.
    public var context: Context?

    public init(problem: String, mark: YAMLMark, context: Context? = nil) {
      (self.problem, self.mark, self.context) = (problem, mark, context)
    }
  }

  public struct Context: Hashable, Sendable {
    public var text: String
    public var mark: YAMLMark
  }
}
