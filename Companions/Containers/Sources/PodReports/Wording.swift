import Control
import KubernetesAPI

/// The daemon's events about a worker, as events of its pod.
public enum Wording {
  /// Returns the event; nil if it isn't for a pod.
  public static func happening(
    _ record: EventRecord, of pod: PodReference, container: String
  ) -> PodOccurrence? {
    guard let (reason, kind) = reason(of: record) else { return nil }
    return PodOccurrence(
      reason, "Container \(container)\(clause(reason, record))", of: pod, container: container,
      kind: kind)
  }

  private static func reason(of record: EventRecord) -> (String, KubernetesEvent.Kind)? {
    switch record.kind {
    case "state": return reason(ofChange: record)
    case "failed":
      if record.text.hasPrefix("can't be hibernated") { return ("NotHibernated", .warning) }
      if record.text.hasPrefix("can't be resumed") { return ("NotWoken", .warning) }
      return record.text.hasPrefix("`hibernate`") ? ("NotHibernated", .warning) : nil
    case "refused":
      return record.text.hasPrefix("`hibernate`") ? ("NotHibernated", .warning) : nil
    default: return nil
    }
  }

  private static func reason(
    ofChange record: EventRecord
  ) -> (String, KubernetesEvent.Kind)? {
    switch (record.from, record.to, record.code) {
    case (_, "hibernated"?, _): ("Hibernated", .normal)
    case (_, _, "released"?): ("Released", .normal)
    case (_, "terminated"?, let code?) where isDaemonDecision(code): ("Terminated", .warning)
    case (_, "terminated"?, _): nil
    case ("hibernated"?, _, _): ("Woken", .normal)
    default: nil
    }
  }

  /// Returns whether Dormouse has ended the worker. The kubelet reports any other end.
  private static func isDaemonDecision(_ code: String) -> Bool {
    code == "pressure" || code == "footprint_limit" || code == "watchdog"
      || code.hasPrefix("requested_")
  }

  private static func clause(_ reason: String, _ record: EventRecord) -> String {
    let text = escaped(record.text)
    switch reason {
    case "Hibernated":
      guard let freed = record.freed, freed > 0 else { return " is hibernated: \(text)" }
      return " is hibernated, \(sizeText(freed)) of its memory is on disk: \(text)"
    case "Woken": return " is awake: \(text)"
    case "Terminated": return " was terminated by Dormouse: \(text)"
    case "Released": return " isn't managed by Dormouse any more"
    default: return ": \(text)"
    }
  }
}
