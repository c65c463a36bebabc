/// Why a text is no YAML document, or is refused as one.
public enum YAMLError: Error, Hashable, Sendable {
  /// A character that YAML doesn't allow, and its offset in bytes from the start of the text.
  case character(problem: String, byteOffset: Int)
  case syntax(Syntax)
  /// A collection inside more than `limit` others.
  case depth(limit: Int, mark: YAMLMark)
  /// The text with all aliases written out would be longer than `limit` bytes.
  case aliases(limit: Int, mark: YAMLMark)
  /// libyaml compares each `%TAG` with all before it, which takes seconds for a megabyte of them.
  case tagDirectives(limit: Int)
  case outOfMemory

  /// libyaml's words, and its places.
  public struct Syntax: Hashable, Sendable {
    public var problem: String
    public var mark: YAMLMark
    /// What was being read, and where that begins.
    public var context: Context?

    public init(problem: String, mark: YAMLMark, context: Context? = nil) {
      self.problem = problem
      self.mark = mark
      self.context = context
    }
  }

  public struct Context: Hashable, Sendable {
    public var text: String
    public var mark: YAMLMark

    public init(text: String, mark: YAMLMark) {
      self.text = text
      self.mark = mark
    }
  }
}
