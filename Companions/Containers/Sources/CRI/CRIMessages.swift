/// The parts of `runtime.v1` that are used here, by the numbers of their fields.
public enum CRIMessages {
  public struct Version: ProtobufReadable, Hashable {
    public var runtime = ""
    public var version = ""
    init() {}

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {
      switch field {
      case 2: runtime = value.text
      case 3: version = value.text
      default: break
      }
    }

    /// True if each listener gets each event. containerd before 2.0 sends an event to only one of
    /// its listeners, so a kubelet that listens (its feature EventedPLEG) would miss those that are
    /// read here. containerd before 1.7 has no events.
    public var hasEventsForAll: Bool {
      guard runtime == "containerd" else { return true }
      let major = version.drop { !$0.isNumber }.prefix { $0.isNumber }
      return Int(major).map { $0 >= 2 } ?? true
    }
  }

  /// A pod.
  public struct Sandbox: ProtobufReadable, Hashable {
    public var id = ""
    public var name = ""
    public var namespace = ""
    public var uid = ""
    /// True if the pod's pause container runs.
    public var isReady = true
    public var annotations: [String: String] = [:]
    init() {}

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
      .Malformed)
    {
      switch field {
      case 1: id = value.text
      case 2:
        let metadata = try value.message(Metadata.self)
        (name, namespace, uid) = (metadata.name, metadata.namespace, metadata.uid)
      case 3: isReady = value.number == 0
      case 6:
        let entry = try value.message(MapEntry.self)
        annotations[entry.key] = entry.value
      default: break
      }
    }
  }

  /// A container of a pod. Pause containers aren't listed.
  public struct Container: ProtobufReadable, Hashable {
    public var id = ""
    public var sandbox = ""
    public var name = ""
    init() {}

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
      .Malformed)
    {
      switch field {
      case 1: id = value.text
      case 2: sandbox = value.text
      case 3: name = try value.message(Metadata.self).name
      default: break
      }
    }
  }

  struct Metadata: ProtobufReadable {
    var name = ""
    /// The pod's uid. The field with this number is a number for a container, and reads as an empty
    /// text.
    var uid = ""
    var namespace = ""

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {
      switch field {
      case 1: name = value.text
      case 2: uid = value.text
      case 3: namespace = value.text
      default: break
      }
    }
  }

  struct Sandboxes: ProtobufReadable {
    var items: [Sandbox] = []

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
      .Malformed)
    {
      if field == 1 { items.append(try value.message(Sandbox.self)) }
    }
  }

  struct Containers: ProtobufReadable {
    var items: [Container] = []

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
      .Malformed)
    {
      if field == 1 { items.append(try value.message(Container.self)) }
    }
  }

  struct ContainerStatus: ProtobufReadable {
    var state = ContainerState.created
    /// Information in the runtime's own format: JSON in `info` has the number of the process.
    var info: [String: String] = [:]

    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) throws(ProtobufReader
      .Malformed)
    {
      switch field {
      case 1: state = try value.message(Status.self).state
      case 2:
        let entry = try value.message(MapEntry.self)
        info[entry.key] = entry.value
      default: break
      }
    }

    struct Status: ProtobufReadable {
      var state = ContainerState.created

      mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {
        if field == 3 { state = ContainerState(rawValue: value.number) ?? .unknown }
      }
    }
  }

  enum ContainerState: UInt64 { case created, running, exited, unknown }

  /// A line of the stream of events. Only its arrival matters.
  struct Event: ProtobufReadable {
    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {}
  }
}
