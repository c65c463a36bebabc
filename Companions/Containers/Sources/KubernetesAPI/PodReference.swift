/// A pod of the API. Another pod may have its name later, but not its uid.
public struct PodReference: Hashable, Sendable {
  public var namespace: String
  public var name: String
  public var uid: String

  public init(namespace: String, name: String, uid: String) {
    self.namespace = namespace
    self.name = name
    self.uid = uid
  }

  /// The title as in `kubectl`, such as `shop/web-0`.
  public var title: String { "\(namespace)/\(name)" }
}
