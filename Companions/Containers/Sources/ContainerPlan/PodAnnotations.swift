/// Annotations of a pod as labels of one of its containers. `dormouse.io/KEY` is for all
/// containers. `CONTAINER.dormouse.io/KEY` is for one, and takes precedence.
public enum PodAnnotations {
  private static let domain = "dormouse.io/"
  /// The annotations that this program writes to a pod, which aren't settings.
  private static let written: Set<String> = ["dormouse.io/requests"]

  /// Returns whether one of the annotations concerns Dormouse.
  public static func matter(_ annotations: [String: String]) -> Bool {
    annotations.keys.contains {
      ($0.hasPrefix(domain) || $0.contains("." + domain)) && !written.contains($0)
    }
  }

  public static func labels(
    of container: String, in annotations: [String: String]
  ) -> [String: String] {
    var labels: [String: String] = [:]
    for prefix in [domain, "\(container).\(domain)"] {
      for (name, value) in annotations where name.hasPrefix(prefix) && !written.contains(name) {
        labels[LabelReading.prefix + name.dropFirst(prefix.count)] = value
      }
    }
    return labels
  }
}
