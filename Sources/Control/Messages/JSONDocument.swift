/// The output of a verb with `--json`: one object with the number of its schema at the top.
public struct JSONDocument<Body: Encodable>: Encodable {
  /// A value that encodes itself as an object.
  public var body: Body

  public init(_ body: Body) { self.body = body }

  private enum Keys: CodingKey { case schema }

  /// The schema number of all documents of one version of Dormouse. docs/json.md describes them.
  /// The number is increased when a key or a code is removed, or changes its meaning or type. It
  /// stays when one is added.
  private static var schema: Int { 1 }

  public func encode(to encoder: any Encoder) throws {
    try body.encode(to: encoder)
    var top = encoder.container(keyedBy: Keys.self)
    try top.encode(Self.schema, forKey: .schema)
  }
}
