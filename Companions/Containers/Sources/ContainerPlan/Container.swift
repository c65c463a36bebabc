/// A running container, as its runtime describes it.
public struct Container: Hashable, Sendable {
  /// The name of the runtime, `docker` or `podman`. It is for messages, and identifies the runtime
  /// that has the container.
  public var runtime: String
  public var id: String
  public var name: String
  /// The labels, including those of its image.
  public var labels: [String: String]
  /// The labels of its image; nil if they are unknown.
  public var imageLabels: [String: String]? = [:]
  /// The pid of its first process, in this machine's own numbers.
  public var pid: Int32
  /// The start time of that process, in the kernel's ticks; nil if it has ended. Another process
  /// may have its pid later.
  public var startTime: UInt64?
  public var isPaused = false
  /// The interval of its health check in seconds; nil if it has none.
  public var healthInterval: Double?
  /// True if the process has a mount namespace of its own. If not, the runtime numbers its
  /// processes in another namespace, and the pid is that of an unrelated process.
  public var isContained = true
  /// The pod of the container. With nil, its settings are its own labels.
  public var pod: String?
  /// The pod's and the container's names in Kubernetes.
  public var member: PodMember?

  public init(
    runtime: String, id: String, name: String, labels: [String: String], pid: Int32
  ) {
    self.runtime = runtime
    self.id = id
    self.name = name
    self.labels = labels
    self.pid = pid
  }

  /// One run of a container. After a restart it has the same id and another process.
  public struct Run: Hashable, Sendable {
    public var id: String
    public var pid: Int32
  }

  public var run: Run { Run(id: id, pid: pid) }

  /// The container's title, such as `web (docker 3f2a8b19c0de)`, with the id of `docker ps`.
  public var title: String { "\(name) (\(runtime) \(id.prefix(12)))" }
}

extension Container {
  /// A setting as its author has written it, such as `label dormouse.mode=shadow`.
  func term(_ key: String, _ value: String) -> String {
    pod == nil ? "label dormouse.\(key)=\(value)" : "annotation dormouse.io/\(key): \(value)"
  }
}

/// A container of a pod, by the names of Kubernetes.
public struct PodMember: Hashable, Sendable {
  public var namespace: String
  public var pod: String
  public var uid: String
  public var container: String
  /// True if the kubelet has the pod from a file or a URL, and not from the API.
  public var isStatic: Bool

  public init(
    namespace: String, pod: String, uid: String, container: String, isStatic: Bool = false
  ) {
    self.namespace = namespace
    self.pod = pod
    self.uid = uid
    self.container = container
    self.isStatic = isStatic
  }
}

/// A worker of the daemon.
public struct ManagedWorker: Hashable, Sendable {
  public var name: String
  /// The pid; nil if the worker isn't running.
  public var pid: Int32?

  public init(name: String, pid: Int32?) {
    self.name = name
    self.pid = pid
  }
}
