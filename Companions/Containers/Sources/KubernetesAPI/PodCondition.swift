import JSONLines

/// A condition of a pod.
public struct PodCondition: Hashable, Sendable {
  public enum Status: String, Hashable, Sendable {
    case yes = "True", no = "False", unknown = "Unknown"
  }

  public var type: String
  public var status: Status
  /// One word, for programs.
  public var reason: String
  public var message: String
  /// The time at which `status` changed; nil if it is unknown.
  public var since: String?

  public init(
    _ type: String, _ status: Status, reason: String, message: String, since: String? = nil
  ) {
    self.type = type
    self.status = status
    self.reason = reason
    self.message = message
    self.since = since
  }

  /// Returns whether both have the same content. The time of the change is ignored.
  public func says(_ other: PodCondition) -> Bool {
    status == other.status && reason == other.reason && message == other.message
      && type == other.type
  }

  init?(_ json: JSON) {
    guard let type = json["type"]?.text,
      let status = json["status"]?.text.flatMap(Status.init(rawValue:))
    else { return nil }
    self.init(
      type, status, reason: json["reason"]?.text ?? "", message: json["message"]?.text ?? "",
      since: json["lastTransitionTime"]?.text)
  }

  var json: JSON {
    .object(of: [
      "type": .string(type), "status": .string(status.rawValue), "reason": .string(reason),
      "message": .string(message), "lastTransitionTime": since.map { .string($0) },
    ])
  }
}
