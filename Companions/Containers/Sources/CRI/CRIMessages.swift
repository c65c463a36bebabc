/// The parts of `runtime.v1` that matter here, by the numbers of their fields.
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

    /// Each listener gets each event. containerd before 2.0 gives an event to one of its listeners only, so that a kubelet
    /// that listens (its feature EventedPLEG) would miss those that are read here; before 1.7 it has none.
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
    /// Its pause container runs.
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

  /// A container of a pod; never a pause container.
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
    /// Of a pod. The field of a container is a number, and reads as an empty text.
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
    /// Of the runtime's own making: JSON in `info` has the process's number.
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

  /// A line of the stream of events: that there is one is enough.
  struct Event: ProtobufReadable {
    mutating func read(_ field: UInt64, _ value: ProtobufReader.Value) {}
  }
}
