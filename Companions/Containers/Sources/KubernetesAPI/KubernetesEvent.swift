import JSONLines

/// An event of `v1`, which `kubectl describe pod` shows. Repetition is counted in one object.
public struct KubernetesEvent: Hashable, Sendable {
  public enum Kind: String, Hashable, Sendable { case normal = "Normal", warning = "Warning" }

  public var name: String
  public var pod: PodReference
  /// nil: it concerns all of the pod.
  public var container: String?
  public var kind: Kind
  public var reason: String
  public var message: String
  public var count: Int
  /// Seconds since 1970.
  public var first: Int64
  public var last: Int64
  /// The node.
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

  /// The API refuses longer ones of newer kinds of events.
  static let longestMessage = 1024

  private var shownMessage: JSON {
    if message.utf8.count <= Self.longestMessage { return .string(message) }
    // A cut character becomes U+FFFD, of three bytes.
    return .string(
      String(decoding: message.utf8.prefix(Self.longestMessage - 6), as: UTF8.self) + "…")
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

  /// What a repetition changes.
  var repetition: JSON {
    .object(of: [
      "count": .int(Int64(count)), "lastTimestamp": .string(APITime.text(last)),
      "message": shownMessage,
    ])
  }
}
