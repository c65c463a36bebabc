import JSONLines

/// A Kubernetes API server without a network, for the few requests that are made here.
struct FakeCluster: Sendable {
  struct Answer: Sendable {
    var status: Int
    var body: JSON
  }

  /// The pods, by `namespace/name`.
  var pods: [String: JSON] = [:]
  var events: [String: JSON] = [:]
  /// True if the server supports `pods/resize`.
  var hasResize = true
  /// The number of Mi above which requests are refused.
  var quota: Int64?

  static func pod(
    _ name: String, uid: String, requests: [String: String] = [:], qos: String = "Burstable"
  ) -> JSON {
    let containers = requests.sorted { $0.key < $1.key }.map { container, memory in
      #"{"name":"\#(container)","resources":{"requests":{"cpu":"100m","memory":"\#(memory)"},"#
        + #""limits":{"memory":"1Gi"}}}"#
    }
    let text = """
      {"apiVersion":"v1","kind":"Pod","metadata":{"name":"\(name)","namespace":"shop","uid":"\
      \(uid)","annotations":{"dormouse.io/policy":"server"}},"spec":{"containers":[\
      \(containers.joined(separator: ","))]},"status":{"phase":"Running","qosClass":"\(qos)","cond\
      itions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-21T08:46:07Z"}]}}
      """
    return JSON(Array(text.utf8)) ?? .null
  }

  mutating func answer(_ method: String, _ path: String, _ body: JSON?) -> Answer {
    let parts = path.prefix { $0 != "?" }.split(separator: "/").map(String.init)
    guard parts.count >= 5, parts[..<3] == ["api", "v1", "namespaces"] else {
      return .failure(404, "no such path")
    }
    let name = parts.count > 5 ? parts[5] : ""
    switch (method, parts[4], parts.count) {
    case ("POST", "events", 5): return create(body ?? .null)
    case ("PATCH", "events", 6): return repeatEvent(name, body ?? .null)
    case ("GET", "pods", 6):
      return pods["\(parts[3])/\(name)"].map { Answer(status: 200, body: $0) }
        ?? .failure(404, "pods \"\(name)\" not found")
    case ("PATCH", "pods", 7): return patch("\(parts[3])/\(name)", parts[6], body ?? .null)
    default: return .failure(404, "no such path")
    }
  }

  private mutating func create(_ event: JSON) -> Answer {
    guard let name = event["metadata"]?["name"]?.text else { return .failure(422, "no name") }
    guard events[name] == nil else { return .failure(409, "exists") }
    events[name] = event
    return Answer(status: 201, body: event)
  }

  private mutating func repeatEvent(_ name: String, _ patch: JSON) -> Answer {
    guard var event = events[name], case .object(let members) = patch else {
      return .failure(404, "events \"\(name)\" not found")
    }
    for member in members { event.set(member.name, member.value) }
    events[name] = event
    return Answer(status: 200, body: event)
  }

  private mutating func patch(_ key: String, _ subresource: String, _ patch: JSON) -> Answer {
    guard var pod = pods[key] else { return .failure(404, "pods \"\(key)\" not found") }
    if let uid = patch["metadata"]?["uid"], uid != pod["metadata"]?["uid"] {
      return .failure(
        422, "Pod \"web\" is invalid: metadata.uid: Invalid value: field is immutable")
    }
    switch subresource {
    case "status":
      pod.change("metadata") { Self.merge(patch["metadata"]?["annotations"], into: &$0) }
      pod.change("status") { Self.merge(conditions: patch["status"]?["conditions"], into: &$0) }
    case "resize":
      guard hasResize else { return .failure(404, "the server could not find the resource") }
      if let failure = resize(&pod, patch["spec"]?["containers"]) { return failure }
    default: return .failure(404, "no such path")
    }
    pods[key] = pod
    return Answer(status: 200, body: pod)
  }

  private static func merge(_ annotations: JSON?, into metadata: inout JSON) {
    guard case .object(let changes) = annotations else { return }
    metadata.change("annotations") { present in
      guard case .object(var members) = present else { return }
      for change in changes {
        members.removeAll { $0.name == change.name }
        if change.value != .null { members.append(change) }
      }
      present = .object(members)
    }
  }

  private static func merge(conditions: JSON?, into status: inout JSON) {
    var present = status["conditions"]?.elements ?? []
    for condition in conditions?.elements ?? [] {
      let index = present.firstIndex { $0["type"] == condition["type"] }
      if condition["$patch"]?.text == "delete" {
        if let index { present.remove(at: index) }
      } else if let index {
        guard case .object(let members) = condition else { continue }
        for member in members { present[index].set(member.name, member.value) }
      } else {
        present.append(condition)
      }
    }
    status.set("conditions", .array(present))
  }

  private func resize(_ pod: inout JSON, _ changes: JSON?) -> Answer? {
    if pod["status"]?["qosClass"]?.text == "Guaranteed" {
      return .failure(422, "Pod QOS Class may not change as a result of resizing")
    }
    var containers = pod["spec"]?["containers"]?.elements ?? []
    for change in changes?.elements ?? [] {
      guard let memory = change["resources"]?["requests"]?["memory"]?.text,
        let index = containers.firstIndex(where: { $0["name"] == change["name"] })
      else { return .failure(422, "no such container") }
      if let quota, Int64(memory.prefix { $0.isNumber }) ?? 0 > quota {
        return .failure(403, "pods \"web\" is forbidden: exceeded quota")
      }
      containers[index].change("resources") {
        $0.change("requests") { $0.set("memory", .string(memory)) }
      }
    }
    pod.change("spec") { $0.set("containers", .array(containers)) }
    return nil
  }
}

extension FakeCluster.Answer {
  static func failure(_ status: Int, _ message: String) -> Self {
    Self(
      status: status,
      body: .object([
        JSON.Member("kind", .string("Status")), JSON.Member("message", .string(message)),
      ]))
  }
}

extension JSON {
  mutating func change(_ name: String, _ body: (inout JSON) -> Void) {
    var value = self[name] ?? .object([])
    body(&value)
    set(name, value)
  }
}

extension FakeCluster {
  func condition(_ pod: String) -> JSON? {
    pods[pod]?["status"]?["conditions"]?.elements?.first {
      $0["type"]?.text == "dormouse.io/Hibernated"
    }
  }

  /// The condition's status, `True`, `False` or `Unknown`; nil if there is none.
  func status(_ pod: String) -> String? { condition(pod)?["status"]?.text }

  func request(_ pod: String, _ container: String) -> String? {
    pods[pod]?["spec"]?["containers"]?.elements?.first { $0["name"]?.text == container }?[
      "resources"]?["requests"]?["memory"]?.text
  }

  func annotation(_ pod: String) -> String? {
    pods[pod]?["metadata"]?["annotations"]?["dormouse.io/requests"]?.text
  }

  func events(_ reason: String) -> [JSON] {
    events.values.filter { $0["reason"]?.text == reason }
  }
}
