import JSONLines

/// An event of `v1`, which `kubectl describe pod` shows. Repetitions are counted in one object.
public struct KubernetesEvent: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable { case normal = "Normal", warning = "Warning" }

  public var name: String
  public var pod: PodReference
  /// The container; nil if the event concerns the whole pod.
  public var container: String?
  public var kind: Kind
  public var reason: String
  public var message: String
  public var count: Int
  /// The time of the first occurrence, in seconds since 1970.
  public var first: Int64
  public var last: Int64
  /// The name of the node.
  public var node: String

  public init(
    name: String, pod: PodReference, container: String?, kind: Kind, reason: String,
    message: String, count: Int, first: Int64, last: Int64, node: String
  ) {
    self.name = name
    self.pod = pod
    self.container = container
    self.kind = kind
    self.reason = reason
    self.message = message
    self.count = count
    self.first = first
    self.last = last
    self.node = node
  }

  /// The maximum length of a message: the API refuses longer ones for newer kinds of events.
  static let maxMessage = 1024

  private var shownMessage: JSON {
    if message.utf8.count <= Self.maxMessage { return .string(message) }
    // A cut character becomes U+FFFD, which has three bytes.
    return .string(
      String(decoding: message.utf8.prefix(Self.maxMessage - 6), as: UTF8.self) + "…")
  }

  var json: JSON {
    .object(of: [
      "apiVersion": .string("v1"), "kind": .string("Event"),
      "metadata": .texts(["name": name, "namespace": pod.namespace]),
      "involvedObject": .object(of: [
        "apiVersion": .string("v1"), "kind": .string("Pod"), "namespace": .string(pod.namespace),
        "name": .string(pod.name), "uid": .string(pod.uid),
        "fieldPath": container.map { .string("spec.containers{\($0)}") },
      ]),
      "type": .string(kind.rawValue), "reason": .string(reason), "message": shownMessage,
      "count": .int(Int64(count)), "firstTimestamp": .string(APITime.text(first)),
      "lastTimestamp": .string(APITime.text(last)),
      "source": .texts(["component": "dormouse", "host": node]),
      "reportingComponent": .string("dormouse"), "reportingInstance": .string(node),
    ])
  }

  /// The changes of a repetition.
  var repetition: JSON {
    .object(of: [
      "count": .int(Int64(count)), "lastTimestamp": .string(APITime.text(last)),
      "message": shownMessage,
    ])
  }
}
