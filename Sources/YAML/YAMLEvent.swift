/// One step of libyaml's parser.
package struct YAMLEvent {
  package enum Kind {
    case streamStart, streamEnd, documentStart, documentEnd
    case alias(anchor: String)
    case scalar(String, YAMLNode.Scalar.Style)
    case sequenceStart, sequenceEnd, mappingStart, mappingEnd
  }

  package var kind: Kind
  /// The position where the node, or the end of a collection, begins.
  package var mark: YAMLMark
  /// The anchor of a scalar or of the start of a collection.
  package var anchor: String? = nil
  package var tag: String? = nil
  /// The Unicode scalars of the event in the text, without a byte order mark. For a block
  /// collection it is only the position where it begins.
  package var scalars = 0..<0
  /// True for a collection between brackets.
  package var isFlow = false
}
