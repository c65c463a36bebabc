import JSONLines

/// A strategic merge patch of a pod. Because of its uid, the API refuses it for another pod with
/// the same name.
public struct PodPatch: Hashable, Sendable {
  var json: JSON

  /// A patch that changes nothing: the answer is the pod.
  public static func nothing(_ pod: PodReference) -> PodPatch {
    PodPatch(json: .object(of: ["metadata": metadata(pod, annotations: [:])]))
  }

  public static func set(_ condition: PodCondition, of pod: PodReference) -> PodPatch {
    withCondition(condition.json, pod)
  }

  public static func removeCondition(_ type: String, of pod: PodReference) -> PodPatch {
    withCondition(.object(of: ["$patch": .string("delete"), "type": .string(type)]), pod)
  }

  /// Sets annotations. nil removes one.
  public static func annotate(
    _ pod: PodReference, _ annotations: [String: String?]
  ) -> PodPatch {
    PodPatch(json: .object(of: ["metadata": metadata(pod, annotations: annotations)]))
  }

  public static func request(_ memory: [MemoryRequest], of pod: PodReference) -> PodPatch {
    func resized(_ isInit: Bool) -> JSON? {
      let containers = memory.filter { $0.isInit == isInit }.map { request -> JSON in
        .object(of: [
          "name": .string(request.container),
          "resources": .object(of: ["requests": .texts(["memory": request.quantity.text])]),
        ])
      }
      return containers.isEmpty ? nil : .array(containers)
    }
    return PodPatch(
      json: .object(of: [
        "metadata": metadata(pod, annotations: [:]),
        "spec": .object(of: ["containers": resized(false), "initContainers": resized(true)]),
      ]))
  }

  private static func withCondition(_ condition: JSON, _ pod: PodReference) -> PodPatch {
    PodPatch(
      json: .object(of: [
        "metadata": metadata(pod, annotations: [:]),
        "status": .object(of: ["conditions": .array([condition])]),
      ]))
  }

  private static func metadata(_ pod: PodReference, annotations: [String: String?]) -> JSON {
    let changes = annotations.sorted { $0.key < $1.key }.map { name, value in
      JSON.Member(name, value.map { .string($0) } ?? .null)
    }
    return .object(of: [
      "uid": .string(pod.uid), "annotations": changes.isEmpty ? nil : .object(changes),
    ])
  }
}

/// A container's memory request.
public struct MemoryRequest: Hashable, Sendable {
  public var container: String
  /// True if it is one of `initContainers` that runs beside the others.
  public var isInit: Bool
  public var quantity: MemoryQuantity

  public init(_ container: String, _ quantity: MemoryQuantity, isInit: Bool = false) {
    self.container = container
    self.quantity = quantity
    self.isInit = isInit
  }
}
