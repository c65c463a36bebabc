/// A value in a YAML text, with its position. Every scalar is text: nothing turns `no` or `1:30`
/// into another type. An alias is the value of its anchor and shares its storage.
///
/// Nodes can't be compared or hashed: a few nested aliases would make that exponential.
public enum YAMLNode: Sendable {
  case scalar(Scalar)
  case sequence(Sequence)
  case mapping(Mapping)

  public struct Scalar: Sendable {
    public enum Style: Hashable, Sendable {
      case plain, singleQuoted, doubleQuoted, literal, folded
    }

    public var string: String
    /// The tag as written, with its handle resolved. `nil` if the scalar has none.
    public var tag: String?
    public var style: Style
    /// The position in the text. `nil` if the scalar doesn't come from a text.
    public var mark: YAMLMark?

    public init(
      _ string: String, tag: String? = nil, style: Style = .plain, mark: YAMLMark? = nil
    ) {
      self.string = string
      self.tag = tag
      self.style = style
      self.mark = mark
    }
  }

  public struct Sequence: Sendable {
    public var items: [YAMLNode]
    public var tag: String?
    public var mark: YAMLMark?

    public init(_ items: [YAMLNode] = [], tag: String? = nil, mark: YAMLMark? = nil) {
      self.items = items
      self.tag = tag
      self.mark = mark
    }
  }

  /// Keys and values in the order of the text. A key may occur more than once:
  /// `YAMLDocument.duplicates` lists these keys.
  public struct Mapping: Sendable {
    public typealias Entry = (key: YAMLNode, value: YAMLNode)

    public var entries: [Entry]
    public var tag: String?
    public var mark: YAMLMark?

    public init(_ entries: [Entry] = [], tag: String? = nil, mark: YAMLMark? = nil) {
      self.entries = entries
      self.tag = tag
      self.mark = mark
    }

    /// The value of a key. If the key occurs several times, it is the last value.
    public subscript(key: String) -> YAMLNode? {
      entries.last { $0.key.scalar?.string == key }?.value
    }
  }
}

/// A position in a text. Both numbers count from 1; columns count Unicode scalars.
public struct YAMLMark: Hashable, Sendable {
  public var line: Int
  public var column: Int

  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }
}

extension YAMLNode {
  public var scalar: Scalar? {
    if case .scalar(let scalar) = self { scalar } else { nil }
  }

  public var sequence: Sequence? {
    if case .sequence(let sequence) = self { sequence } else { nil }
  }

  public var mapping: Mapping? {
    if case .mapping(let mapping) = self { mapping } else { nil }
  }

  public var tag: String? {
    switch self {
    case .scalar(let scalar): scalar.tag
    case .sequence(let sequence): sequence.tag
    case .mapping(let mapping): mapping.tag
    }
  }

  public var mark: YAMLMark? {
    switch self {
    case .scalar(let scalar): scalar.mark
    case .sequence(let sequence): sequence.mark
    case .mapping(let mapping): mapping.mark
    }
  }
}

extension YAMLNode.Sequence: RandomAccessCollection {
  public var startIndex: Int { items.startIndex }
  public var endIndex: Int { items.endIndex }
  public subscript(index: Int) -> YAMLNode { items[index] }
}

extension YAMLNode.Mapping: RandomAccessCollection {
  public var startIndex: Int { entries.startIndex }
  public var endIndex: Int { entries.endIndex }
  public subscript(index: Int) -> Entry { entries[index] }
}
