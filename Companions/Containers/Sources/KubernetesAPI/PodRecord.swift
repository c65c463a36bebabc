import JSONLines

/// The fields of a pod in the API that are used here.
public struct PodRecord: Hashable, Sendable {
  public struct Container: Hashable, Sendable {
    public var name: String
    /// True if it is one of `initContainers` that runs beside the others.
    public var isInit: Bool
    /// The memory request; nil if it has none, or one that can't be read.
    public var memoryRequest: MemoryQuantity?
    /// True if the container is restarted when its memory is resized (`resizePolicy`).
    public var isRestartedByResize: Bool
  }

  public var uid: String
  public var annotations: [String: String]
  public var conditions: [PodCondition]
  /// The QoS class: `Guaranteed`, `Burstable` or `BestEffort`.
  public var qosClass: String
  public var containers: [Container]
  /// True if the pod has requests of its own (`spec.resources`), which count instead of its
  /// containers'.
  public var hasPodRequests: Bool
  /// True if the pod is being deleted.
  public var isEnding: Bool
  /// The reason why the kubelet hasn't applied the last resize. It is nil if the kubelet has
  /// applied it, or hasn't processed it yet.
  public var pendingResize: PodCondition?

  public init?(_ json: JSON) {
    guard let metadata = json["metadata"], let uid = metadata["uid"]?.text else { return nil }
    self.uid = uid
    annotations = (metadata["annotations"]?.members ?? [:]).compactMapValues(\.text)
    isEnding = metadata["deletionTimestamp"]?.text != nil
    let status = json["status"]
    conditions = (status?["conditions"]?.elements ?? []).compactMap(PodCondition.init)
    qosClass = status?["qosClass"]?.text ?? ""
    let spec = json["spec"]
    containers = ["containers", "initContainers"].flatMap { list in
      (spec?[list]?.elements ?? []).compactMap {
        Container($0, isInit: list == "initContainers")
      }
    }
    hasPodRequests = spec?["resources"]?["requests"]?["memory"] != nil
    pendingResize = Self.pendingResize(conditions, status)
  }

  private static func pendingResize(_ conditions: [PodCondition], _ status: JSON?) -> PodCondition?
  {
    let type = "PodResizePending"
    if let pending = conditions.first(where: { $0.type == type }) {
      return pending.status == .yes ? pending : nil
    }
    // This is the form before Kubernetes 1.33.
    guard let word = status?["resize"]?.text, word == "Deferred" || word == "Infeasible" else {
      return nil
    }
    return PodCondition(type, .yes, reason: word, message: "")
  }

  public func condition(_ type: String) -> PodCondition? { conditions.first { $0.type == type } }
}

extension PodRecord.Container {
  init?(_ json: JSON, isInit: Bool) {
    guard let name = json["name"]?.text else { return nil }
    self.name = name
    self.isInit = isInit
    let request = json["resources"]?["requests"]?["memory"]
    // A number without quotes is an amount, too.
    memoryRequest = (request?.text ?? request?.integer.map { "\($0)" }).flatMap(MemoryQuantity.init)
    isRestartedByResize = (json["resizePolicy"]?.elements ?? []).contains {
      $0["resourceName"]?.text == "memory" && $0["restartPolicy"]?.text == "RestartContainer"
    }
  }
}
