import ContainerPlan

/// The parts of the Engine API's answers that are used here. Docker and Podman leave out fields
/// that they don't have, so all others are optional.
enum EngineMessages {
  /// An element of `GET /containers/json`.
  struct Listed: Decodable {
    var id: String
    var labels: [String: String]?
    enum CodingKeys: String, CodingKey {
      case id = "Id"
      case labels = "Labels"
    }
  }

  /// The answer to `GET /containers/ID/json`.
  struct Inspected: Decodable {
    struct State: Decodable {
      var running: Bool?
      var paused: Bool?
      var pid: Int32?
      enum CodingKeys: String, CodingKey {
        case running = "Running"
        case paused = "Paused"
        case pid = "Pid"
      }
    }
    struct Settings: Decodable {
      var labels: [String: String]?
      var health: Health?
      enum CodingKeys: String, CodingKey {
        case labels = "Labels"
        case health = "Healthcheck"
      }
    }
    struct Health: Decodable {
      var test: [String]?
      var interval: Int64?
      enum CodingKeys: String, CodingKey {
        case test = "Test"
        case interval = "Interval"
      }

      /// The interval in seconds; nil if there is no check.
      var seconds: Double? {
        guard let kind = test?.first, kind != "NONE" else { return nil }
        // 0 or nothing stands for the runtime's default.
        guard let interval, interval > 0 else { return 30 }
        return Double(interval) / 1e9
      }
    }
    var id: String
    /// The id of the image.
    var image: String?
    var name: String?
    var state: State?
    var settings: Settings?
    enum CodingKeys: String, CodingKey {
      case id = "Id"
      case image = "Image"
      case name = "Name"
      case state = "State"
      case settings = "Config"
    }
  }

  /// The answer to `GET /images/ID/json`.
  struct Image: Decodable {
    struct Settings: Decodable {
      var labels: [String: String]?
      enum CodingKeys: String, CodingKey { case labels = "Labels" }
    }
    var settings: Settings?
    enum CodingKeys: String, CodingKey { case settings = "Config" }
  }

  /// A line of `GET /events`.
  struct Event: Decodable {
    var type: String?
    var action: String?
    enum CodingKeys: String, CodingKey {
      case type = "Type"
      case action = "Action"
    }

    /// True if the event may change a container. A health check or `exec` changes nothing, and
    /// there may be many.
    var matters: Bool {
      guard type ?? "container" == "container", let action else { return false }
      return !action.hasPrefix("exec") && !action.hasPrefix("health_status") && action != "top"
    }
  }
}

extension Container {
  /// The result is nil if the container isn't running.
  init?(_ inspected: EngineMessages.Inspected, runtime: String) {
    guard inspected.state?.running == true, let pid = inspected.state?.pid, pid > 0 else {
      return nil
    }
    // Docker's names begin with a slash.
    let name = (inspected.name ?? "").drop { $0 == "/" }
    self.init(
      runtime: runtime, id: inspected.id,
      name: name.isEmpty ? String(inspected.id.prefix(12)) : String(name),
      labels: inspected.settings?.labels ?? [:], pid: pid)
    isPaused = inspected.state?.paused ?? false
    healthInterval = inspected.settings?.health?.seconds
  }
}
