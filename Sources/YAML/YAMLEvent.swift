/// One step of libyaml's parser.
struct YAMLEvent {
  enum Kind {
    case streamStart, streamEnd, documentStart, documentEnd
    case alias(anchor: String)
    case scalar(String, YAMLNode.Scalar.Style)
    case sequenceStart, sequenceEnd, mappingStart, mappingEnd
  }

  var kind: Kind
  /// The place where the node, or the end of a collection, begins.
  var mark: YAMLMark
  /// The anchor of a scalar or of the start of a collection.
  var anchor: String? = nil
  var tag: String? = nil
}
