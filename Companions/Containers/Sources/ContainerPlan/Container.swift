/// A running container, as its runtime describes it.
public struct Container: Hashable, Sendable {
  /// `docker` or `podman`; for messages, and to know whose container it is.
  public var runtime: String
  public var id: String
  public var name: String
  /// With those of its image.
  public var labels: [String: String]
  /// Those that its image brings along; nil: it isn't known which these are.
  public var imageLabels: [String: String]? = [:]
  /// Of its first process, in this machine's own numbers.
  public var pid: Int32
  /// When that process was started, in the kernel's ticks; nil: it has ended. Another process may have its number later.
  public var startTime: UInt64?
  public var isPaused = false
  /// How often its health check runs, in seconds; nil: it has none.
  public var healthInterval: Double?
  /// The process has a mount namespace of its own. If not, the runtime numbers its processes in another namespace, and
  /// the pid is that of a process that has nothing to do with the container.
  public var isContained = true
  /// The pod that it is part of; nil: none, its settings are labels of its own.
  public var pod: String?
  /// The same pod, as Kubernetes names it.
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

  /// One run of it: after a restart it has the same id and another process.
  public struct Run: Hashable, Sendable {
    public var id: String
    public var pid: Int32
  }

  public var run: Run { Run(id: id, pid: pid) }

  /// `web (docker 3f2a8b19c0de)`, as in `docker ps`.
  public var title: String { "\(name) (\(runtime) \(id.prefix(12)))" }
}

extension Container {
  /// A setting as its author has written it: `label dormouse.mode=shadow`.
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
  /// The kubelet has the pod from a file or a URL, and not from the API.
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

/// A worker that the daemon has.
public struct ManagedWorker: Hashable, Sendable {
  public var name: String
  /// nil: it isn't running.
  public var pid: Int32?

  public init(name: String, pid: Int32?) {
    self.name = name
    self.pid = pid
  }
}
