import CYaml

/// libyaml's parser and the text that it reads. This object owns both and frees both.
///
/// The pointers are valid for this reason: libyaml keeps the addresses of `parser` and `text`,
/// which are allocated here and don't move. The memory that an event points to is valid until the
/// event is deleted, and it is copied before that.
package final class YAMLEventReader {
  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let text: UnsafeMutableBufferPointer<UInt8>

  package init(_ string: String) throws(YAMLError) {
    try Self.checkTagDirectives(in: string)
    parser = .allocate(capacity: 1)
    parser.initialize(to: yaml_parser_t())
    text = .allocate(capacity: string.utf8.count)
    _ = text.initialize(from: string.utf8)
    guard yaml_parser_initialize(parser) == 1 else { throw .outOfMemory }
    // With an encoding set, libyaml would count a byte order mark as a column. Without one, libyaml
    // searches for the mark and skips it. A valid string can't begin with the mark of UTF-16.
    yaml_parser_set_input_string(parser, text.baseAddress, text.count)
  }

  deinit {
    // After a failed initialization all pointers in the parser are nil, which libyaml allows.
    yaml_parser_delete(parser)
    parser.deallocate()
    text.deallocate()
  }

  /// Returns the next event. Don't call it after `streamEnd` or an error.
  package func next() throws(YAMLError) -> YAMLEvent {
    var event = yaml_event_t()
    let succeeded = yaml_parser_parse(parser, &event) == 1
    defer { yaml_event_delete(&event) }
    guard succeeded else { throw failure }
    var copy = Self.copy(event)
    copy.scalars = event.start_mark.index..<max(event.start_mark.index, event.end_mark.index)
    return copy
  }

  private static let tagDirectivesLimit = 100

  /// Counts `%TAG` at the beginning of lines. It counts those in a block of text that isn't
  /// indented, too.
  private static func checkTagDirectives(in text: String) throws(YAMLError) {
    let sign = Array("%TAG".utf8)
    var count = 0
    var matched = 0
    var last: UInt8 = 0
    for byte in text.utf8 {
      // Each line end and the byte order mark is a control character or isn't ASCII.
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

  private static func copy(_ event: yaml_event_t) -> YAMLEvent {
    let mark = YAMLMark(event.start_mark)
    switch event.type {
    case YAML_STREAM_START_EVENT: return YAMLEvent(kind: .streamStart, mark: mark)
    case YAML_DOCUMENT_START_EVENT: return YAMLEvent(kind: .documentStart, mark: mark)
    case YAML_DOCUMENT_END_EVENT: return YAMLEvent(kind: .documentEnd, mark: mark)
    case YAML_ALIAS_EVENT:
      return YAMLEvent(kind: .alias(anchor: string(event.data.alias.anchor) ?? ""), mark: mark)
    case YAML_SCALAR_EVENT:
      let data = event.data.scalar
      // A scalar may contain NUL, so its length is used.
      let bytes = UnsafeBufferPointer(start: data.value, count: data.length)
      return YAMLEvent(
        kind: .scalar(String(decoding: bytes, as: UTF8.self), style(data.style)), mark: mark,
        anchor: string(data.anchor), tag: string(data.tag))
    case YAML_SEQUENCE_START_EVENT:
      let data = event.data.sequence_start
      return YAMLEvent(
        kind: .sequenceStart, mark: mark, anchor: string(data.anchor), tag: string(data.tag),
        isFlow: data.style == YAML_FLOW_SEQUENCE_STYLE)
    case YAML_MAPPING_START_EVENT:
      let data = event.data.mapping_start
      return YAMLEvent(
        kind: .mappingStart, mark: mark, anchor: string(data.anchor), tag: string(data.tag),
        isFlow: data.style == YAML_FLOW_MAPPING_STYLE)
    case YAML_SEQUENCE_END_EVENT: return YAMLEvent(kind: .sequenceEnd, mark: mark)
    case YAML_MAPPING_END_EVENT: return YAMLEvent(kind: .mappingEnd, mark: mark)
    // The other events are YAML_STREAM_END_EVENT, and YAML_NO_EVENT, which libyaml returns after
    // the end.
    default: return YAMLEvent(kind: .streamEnd, mark: mark)
    }
  }

  private static func string(_ bytes: UnsafePointer<yaml_char_t>?) -> String? {
    bytes.map { String(decodingCString: $0, as: UTF8.self) }
  }

  private static func style(_ style: yaml_scalar_style_t) -> YAMLNode.Scalar.Style {
    switch style {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
    case YAML_LITERAL_SCALAR_STYLE: .literal
    case YAML_FOLDED_SCALAR_STYLE: .folded
    default: .plain
    }
  }

  private var failure: YAMLError {
    // libyaml's messages are string constants.
    let problem = parser.pointee.problem.map { String(cString: $0) } ?? "unknown error"
    switch parser.pointee.error {
    case YAML_MEMORY_ERROR: return .outOfMemory
    case YAML_READER_ERROR:
      return .character(problem: problem, byteOffset: parser.pointee.problem_offset)
    default:
      let context = parser.pointee.context.map {
        YAMLError.Context(
          text: String(cString: $0), mark: YAMLMark(parser.pointee.context_mark))
      }
      return .syntax(
        YAMLError.Syntax(
          problem: problem, mark: YAMLMark(parser.pointee.problem_mark), context: context))
    }
  }
}

extension YAMLMark {
  /// Converts a mark. libyaml counts from 0.
  fileprivate init(_ mark: yaml_mark_t) {
    self.init(line: mark.line + 1, column: mark.column + 1)
  }
}
