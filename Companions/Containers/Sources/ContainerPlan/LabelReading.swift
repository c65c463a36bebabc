import Policy
import PolicyFile

/// The settings in the labels of a container.
public struct Wish: Hashable, Sendable {
  public var container: Container
  /// A valid name, which another worker may have.
  public var name: String
  /// The policy; nil for the machine's.
  public var policy: String?
  /// The settings, each as `KEY=VALUE`, sorted.
  public var settings: [String] = []
  public var importance: Int?
  public var mayTerminate = false
  public var isShadow = false
  /// The health checks to answer while the container sleeps; each is a port, or a port and a path.
  public var healthChecks: [String] = []

  /// The settings for a log line, such as `policy server, hibernate.after=5m, shadow mode`.
  public var terms: String {
    var parts = [policy.map { "policy \($0)" } ?? "the machine's policy"] + settings
    if let importance { parts.append("importance \(importance)") }
    if mayTerminate { parts.append("may be terminated") }
    if isShadow { parts.append("shadow mode") }
    if !healthChecks.isEmpty {
      parts.append("answers \(healthChecks.joined(separator: " and ")) while it sleeps")
    }
    return parts.joined(separator: ", ")
  }
}

/// Reads labels. A wrong label is reported, and has no effect on the others.
public struct LabelReading: Hashable, Sendable {
  /// The settings; nil if the labels don't ask for adoption.
  public var wish: Wish?
  /// The errors, as sentences without the container's name.
  public var problems: [String] = []

  public static let prefix = "dormouse."

  private let container: Container

  public init(_ container: Container) {
    self.container = container
    var labels: [String: String] = [:]
    for (label, value) in container.labels where label.hasPrefix(Self.prefix) {
      labels[String(label.dropFirst(Self.prefix.count))] = value
    }
    dropLabelsOfImage(&labels)
    if labels.isEmpty { return }
    let isEnabled = flag("enable", labels)
    if isEnabled == false { return }
    // If `enable` has an error, the container isn't adopted: it may have been meant to stay alone.
    if labels["enable"] != nil, isEnabled == nil { return }
    guard isEnabled == true || labels["policy"] != nil else {
      problems.append(
        container.pod == nil
          ? "it has labels of Dormouse, but isn't adopted: add `dormouse.policy=NAME`, or "
            + "`dormouse.enable=true` for the machine's policy"
          : "it has annotations of Dormouse, but isn't adopted: add `dormouse.io/policy: NAME`, or "
            + "`dormouse.io/enable: \"true\"` for the machine's policy")
      return
    }
    var wish = Wish(
      container: container,
      name: WorkerNaming.valid(labels["name"] ?? WorkerNaming.natural(container), container.id))
    guard readPolicy(labels, into: &wish) else { return }
    if let name = labels["name"], name != wish.name {
      problems.append(
        "\(container.term("name", shown(name))): not a worker's name, `\(wish.name)` is used; a "
          + "name has "
          + NameRule.text)
    }
    wish.importance = importance(labels)
    wish.mayTerminate = flag("may_terminate", labels) ?? false
    wish.isShadow = isShadow(labels)
    wish.healthChecks = healthChecks(labels)
    wish.settings = settings(labels)
    self.wish = wish
  }

  private func term(_ key: String, _ value: String) -> String { container.term(key, value) }

  /// Drops the labels of the image. An image's author is a stranger, so these labels have no effect
  /// unless the container itself has the label `dormouse.image_labels=true`. A runtime doesn't
  /// report the origin of a label, so a label with the image's value counts as the image's.
  private mutating func dropLabelsOfImage(_ labels: inout [String: String]) {
    guard let image = container.imageLabels else {
      if !labels.isEmpty {
        problems.append(
          "not adopted: its image can't be read, so it isn't known which labels are the image's")
      }
      labels = [:]
      return
    }
    let theirs = labels.filter { image[Self.prefix + $0.key] == $0.value }
    for key in theirs.keys { labels[key] = nil }
    if flag(Self.imageLabel, labels) == true {
      labels.merge(theirs) { labels, _ in labels }
    } else if !theirs.isEmpty {
      let names = theirs.keys.sorted().map { "`dormouse.\(shown($0))`" }
      problems.append(
        "labels that its image has as well have no effect: \(names.joined(separator: ", ")); the "
          + "container's own "
          + "label `dormouse.\(Self.imageLabel)=true` accepts them")
    }
  }

  private static let imageLabel = "image_labels"
  private static let healthLabel = "health_checks_while_asleep"

  /// The labels that aren't keys of a policy.
  private static let reservedLabels: Set<String> = [
    "enable", healthLabel, imageLabel, "importance", "may_terminate", "mode", "name", "policy",
  ]

  /// Reads the policy. The result is false if it can't be a policy's name.
  private mutating func readPolicy(_ labels: [String: String], into wish: inout Wish) -> Bool {
    guard let name = labels["policy"] else { return true }
    // A path isn't accepted: the author of a container must not choose which files the daemon
    // reads.
    guard NameRule.allows(name) else {
      problems.append(
        "\(term("policy", shown(name))): not adopted: allowed is the name of a policy, such as "
          + "`server` (`dormouse policy list` lists them)")
      return false
    }
    wish.policy = name
    return true
  }

  private mutating func flag(_ key: String, _ labels: [String: String]) -> Bool? {
    switch labels[key] {
    case nil: return nil
    case "true": return true
    case "false": return false
    case let value?:
      problems.append(
        "\(term(key, shown(value))): ignored"
          + (key == "enable" ? ", and the container isn't adopted" : "")
          + "; allowed are `true` and `false`")
      return nil
    }
  }

  private mutating func importance(_ labels: [String: String]) -> Int? {
    guard let text = labels["importance"] else { return nil }
    if let number = Int(text), (0...100).contains(number) { return number }
    problems.append(
      "\(term("importance", shown(text))): ignored; allowed is a number from 0 to 100")
    return nil
  }

  private mutating func isShadow(_ labels: [String: String]) -> Bool {
    switch labels["mode"] {
    case nil, "manage": return false
    case "shadow": return true
    case let value?:
      problems.append(
        "\(term("mode", shown(value))): decisions about it are only logged (shadow mode); allowed "
          + "are `shadow` and `manage`")
      // A value that can't be read protects the container.
      return true
    }
  }

  /// Reads a list with commas. A check that can't be read wakes the container, as any connection
  /// does.
  private mutating func healthChecks(_ labels: [String: String]) -> [String] {
    guard let value = labels[Self.healthLabel] else { return [] }
    var checks: [String] = []
    for item in value.split(separator: ",", omittingEmptySubsequences: false) {
      let text = String(item.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      do throws(AsleepAnswerError) {
        let check = try AsleepAnswer(text: text).text
        if !checks.contains(check) { checks.append(check) }
      } catch { problems.append("\(term(Self.healthLabel, shown(value))): ignored: \(error)") }
    }
    return checks
  }

  private mutating func settings(_ labels: [String: String]) -> [String] {
    var settings: [String] = []
    for (key, value) in labels.sorted(by: { $0.key < $1.key })
    where !Self.reservedLabels.contains(key) {
      let setting = "\(key)=\(value)"
      do throws(SettingError) {
        _ = try PolicySettings.ofOneWorker([setting])
        settings.append(setting)
      } catch { problems.append("\(term(key, shown(value))): ignored: \(error)") }
    }
    return settings
  }
}

/// A stranger's text for a message: at most one line.
func shown(_ text: String) -> String {
  let line = text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? "?" : String($0) }
    .joined()
  return line.count <= 60 ? line : line.prefix(60) + "…"
}
