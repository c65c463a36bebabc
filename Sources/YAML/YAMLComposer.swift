/// Makes nodes from events. It isn't recursive: open collections are in an array, so that no text
/// can exhaust the thread's stack.
struct YAMLComposer {
  /// The maximum number of nested levels. Hand-written files have about ten. Freeing nodes is
  /// recursive, and 100 levels need only a few kilobytes of stack.
  static let depthLimit = 100
  /// The maximum length in bytes of the text with all aliases written out. Code that reads a
  /// document reads the value of each alias again.
  static let unfoldedLimit = 10 << 20
  /// The maximum number of duplicate keys that are recorded. A message shows at most 100 errors.
  private static let duplicatesLimit = 100

  private struct Anchored {
    var node: YAMLNode
    var unfolded: Int
  }

  private var document = YAMLDocument()
  private var open: [YAMLOpenCollection] = []
  private var anchors: [String: Anchored] = [:]
  private var documents = 0

  /// Adds an event.
  ///
  /// - Returns: the document, at the end of the stream.
  mutating func add(_ event: YAMLEvent) throws(YAMLError) -> YAMLDocument? {
    switch event.kind {
    case .streamStart, .documentEnd: break
    case .streamEnd: return document
    case .documentStart: try beginDocument(at: event.mark)
    case .alias(let name):
      guard let anchored = anchors[name] else {
        throw .syntax(.init(problem: "found undefined alias", mark: event.mark))
      }
      try add(anchored.node, unfolded: anchored.unfolded, at: event.mark)
    case .scalar(let string, let style):
      let scalar = YAMLNode.Scalar(string, tag: event.tag, style: style, mark: event.mark)
      let anchored = Anchored(node: .scalar(scalar), unfolded: string.utf8.count + 1)
      try add(anchored, named: event.anchor, at: event.mark)
    case .sequenceStart, .mappingStart:
      guard open.count < Self.depthLimit else {
        throw .depth(limit: Self.depthLimit, mark: event.mark)
      }
      open.append(YAMLOpenCollection(start: event))
    case .sequenceEnd, .mappingEnd:
      guard let closed = open.popLast() else { break }
      let anchored = Anchored(node: closed.node, unfolded: closed.unfolded)
      try add(anchored, named: closed.start.anchor, at: closed.start.mark)
    }
    return nil
  }

  private mutating func beginDocument(at mark: YAMLMark) throws(YAMLError) {
    documents += 1
    guard documents == 1 else {
      let context = YAMLError.Context(
        text: "expected a single document in the stream", mark: YAMLMark(line: 1, column: 1))
      throw .syntax(.init(problem: "but found another document", mark: mark, context: context))
    }
  }

  /// Adds a node to its collection and remembers its anchor. A collection gets its anchor's name
  /// when it is closed, so that it can't contain itself.
  private mutating func add(
    _ anchored: Anchored, named name: String?, at mark: YAMLMark
  ) throws(YAMLError) {
    if let name { anchors[name] = anchored }
    try add(anchored.node, unfolded: anchored.unfolded, at: mark)
  }

  /// Adds a node to the innermost open collection.
  private mutating func add(
    _ node: YAMLNode, unfolded: Int, at mark: YAMLMark
  ) throws(YAMLError) {
    guard !open.isEmpty else {
      document.root = node
      return
    }
    let duplicate = open[open.count - 1].add(node, at: mark)
    if let duplicate, document.duplicates.count < Self.duplicatesLimit {
      document.duplicates.append(duplicate)
    }
    open[open.count - 1].unfolded += unfolded
    guard open[open.count - 1].unfolded <= Self.unfoldedLimit else {
      throw .aliases(limit: Self.unfoldedLimit, mark: mark)
    }
  }
}

/// A sequence or mapping whose end hasn't been read yet.
struct YAMLOpenCollection {
  let start: YAMLEvent
  /// The length in bytes of what was added, with aliases written out.
  var unfolded = 1
  private let isMapping: Bool
  private var items: [YAMLNode] = []
  private var entries: [YAMLNode.Mapping.Entry] = []
  /// A key whose value hasn't been added yet.
  private var key: YAMLNode?
  private var firsts: [String: YAMLMark] = [:]

  init(start: YAMLEvent) {
    self.start = start
    if case .mappingStart = start.kind { isMapping = true } else { isMapping = false }
  }

  var node: YAMLNode {
    isMapping
      ? .mapping(.init(entries, tag: start.tag, mark: start.mark))
      : .sequence(.init(items, tag: start.tag, mark: start.mark))
  }

  /// Adds a node: an item, a key or a value.
  ///
  /// - Parameter mark: the position of the node. For an alias it isn't the position of its value.
  /// - Returns: a key that is in this mapping already.
  mutating func add(_ node: YAMLNode, at mark: YAMLMark) -> YAMLDocument.Duplicate? {
    guard isMapping else {
      items.append(node)
      return nil
    }
    if let waiting = key {
      entries.append((waiting, node))
      key = nil
      return nil
    }
    key = node
    guard let word = node.scalar?.string else { return nil }
    if let first = firsts[word] {
      return YAMLDocument.Duplicate(key: word, first: first, mark: mark)
    }
    firsts[word] = mark
    return nil
  }
}
