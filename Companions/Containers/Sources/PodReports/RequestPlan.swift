import Control
import JSONLines
import KubernetesAPI

/// The memory requests of pods that sleep, and their former values. The pod itself keeps these in
/// an annotation, so that another run of this program can restore a request.
public enum RequestPlan {
  public static let annotation = "dormouse.io/requests"
  /// The smallest request that is made, in bytes.
  public static let floor: Int64 = 4 << 20

  public struct Entry: Hashable, Sendable {
    public var was: MemoryQuantity
    public var asleep: MemoryQuantity
  }

  /// Returns the former values that the pod keeps; nil if there are none, or if they can't be read.
  public static func formerRequests(_ record: PodRecord) -> [String: Entry]? {
    guard let text = record.annotations[annotation], let json = JSON(Array(text.utf8)),
      case .object(let members) = json
    else { return nil }
    var former: [String: Entry] = [:]
    for member in members {
      guard let was = member.value["was"]?.text.flatMap(MemoryQuantity.init),
        let asleep = member.value["asleep"]?.text.flatMap(MemoryQuantity.init)
      else { continue }
      former[member.name] = Entry(was: was, asleep: asleep)
    }
    return former
  }

  public static func text(_ entries: [String: Entry]) -> String {
    let members = entries.sorted { $0.key < $1.key }.map { name, entry in
      JSON.Member(
        name,
        .object([
          JSON.Member("asleep", .string(entry.asleep.text)),
          JSON.Member("was", .string(entry.was.text)),
        ]))
    }
    return String(decoding: JSON.object(members).line, as: UTF8.self)
  }

  /// Returns the reason why the pod's requests stay as they are; nil if they may shrink.
  public static func obstacle(_ record: PodRecord) -> String? {
    if record.qosClass == "Guaranteed" {
      return "its QoS class is Guaranteed, so that requests and limits are equal"
    }
    if record.hasPodRequests { return "the pod as a whole has a memory request (`spec.resources`)" }
    if let container = record.containers.first(where: \.isRestartedByResize) {
      return "its container \(escaped(container.name)) is restarted when its memory is resized "
        + "(`resizePolicy`)"
    }
    return nil
  }

  /// - Parameter footprints: The footprints of the sleeping containers.
  public static func entries(
    _ record: PodRecord, footprints: [String: Int64]
  ) -> [String: Entry] {
    var entries: [String: Entry] = [:]
    for container in record.containers {
      guard let request = container.memoryRequest, let footprint = footprints[container.name] else {
        continue
      }
      let asleep = MemoryQuantity(roundingUp: footprint, floor: floor)
      if asleep.bytes < request.bytes {
        entries[container.name] = Entry(was: request, asleep: asleep)
      }
    }
    return entries
  }

  public enum Step: Hashable, Sendable {
    /// Keeps the present requests before they are changed.
    case annotate([String: Entry])
    case shrink([MemoryRequest])
    case restore([MemoryRequest])
    /// All requests have their former values again.
    case forget
  }

  /// Returns the next step towards the requests of a pod that is awake.
  public static func restoring(_ record: PodRecord) -> Step? {
    guard record.annotations[annotation] != nil else { return nil }
    let changed = record.containers.compactMap { container -> MemoryRequest? in
      // A request that another program has set meanwhile stays.
      guard let entry = formerRequests(record)?[container.name],
        let request = container.memoryRequest,
        request.bytes == entry.asleep.bytes, request.bytes != entry.was.bytes
      else { return nil }
      return MemoryRequest(container.name, entry.was, isInit: container.isInit)
    }
    return changed.isEmpty ? .forget : .restore(changed)
  }

  /// Returns the next step towards the requests of a pod that sleeps.
  public static func shrinking(_ record: PodRecord, footprints: [String: Int64]) -> Step? {
    guard record.annotations[annotation] != nil else {
      let entries = entries(record, footprints: footprints)
      return entries.isEmpty ? nil : .annotate(entries)
    }
    let changed = record.containers.compactMap { container -> MemoryRequest? in
      guard let entry = formerRequests(record)?[container.name],
        let request = container.memoryRequest,
        request.bytes == entry.was.bytes, entry.asleep.bytes < entry.was.bytes
      else { return nil }
      return MemoryRequest(container.name, entry.asleep, isInit: container.isInit)
    }
    return changed.isEmpty ? nil : .shrink(changed)
  }
}
