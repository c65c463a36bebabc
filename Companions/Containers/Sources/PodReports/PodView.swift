import KubernetesAPI

/// A pod as the runtime and the daemon see it.
public struct PodView: Hashable, Sendable {
  public struct Container: Hashable, Sendable {
    public var name: String
    /// The worker; nil if the container isn't adopted.
    public var worker: String?
    /// The state of the worker.
    public var state: String?
    public var footprint: Int64
    public var secondsInState: Double

    public init(
      _ name: String, worker: String? = nil, state: String? = nil, footprint: Int64 = 0,
      secondsInState: Double = 0
    ) {
      self.name = name
      self.worker = worker
      self.state = state
      self.footprint = footprint
      self.secondsInState = secondsInState
    }

    public var isAsleep: Bool { worker != nil && state == "hibernated" }
  }

  public var pod: PodReference
  /// True if the kubelet has the pod from a file: the API's pod of this name is a copy of it, with
  /// another uid.
  public var isStatic: Bool
  /// The running containers, sorted.
  public var containers: [Container]

  public init(_ pod: PodReference, isStatic: Bool = false, containers: [Container]) {
    self.pod = pod
    self.isStatic = isStatic
    self.containers = containers.sorted { $0.name < $1.name }
  }

  public var isAsleep: Bool { !containers.isEmpty && containers.allSatisfy(\.isAsleep) }
  public var isManaged: Bool { containers.contains { $0.worker != nil } }
}

/// The condition by which the API shows whether a pod sleeps.
public enum HibernatedCondition {
  public static let type = "dormouse.io/Hibernated"

  /// Returns the condition; nil if none of the pod's containers is managed.
  public static func wanted(_ view: PodView) -> PodCondition? {
    guard view.isManaged else { return nil }
    let asleep = view.containers.filter(\.isAsleep)
    let count = view.containers.count
    if asleep.count == count {
      return PodCondition(
        type, .yes, reason: "Hibernated",
        message: count == 1
          ? "its container is hibernated" : "all \(count) containers are hibernated")
    }
    if asleep.isEmpty {
      return PodCondition(type, .no, reason: "Awake", message: "no container is hibernated")
    }
    return PodCondition(
      type, .no, reason: "PartlyAwake",
      message: "hibernated are \(asleep.count) of \(count) containers: "
        + asleep.map(\.name).joined(separator: ", "))
  }

  public static let withoutDaemon = PodCondition(
    type, .unknown, reason: "NoDaemon", message: "the node's Dormouse daemon doesn't answer")
}
