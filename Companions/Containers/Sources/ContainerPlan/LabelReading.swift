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
    var own: [String: String] = [:]
    for (label, value) in container.labels where label.hasPrefix(Self.prefix) {
      own[String(label.dropFirst(Self.prefix.count))] = value
    }
    dropLabelsOfImage(&own)
    if own.isEmpty { return }
    let isEnabled = flag("enable", own)
    if isEnabled == false { return }
    // If `enable` has an error, the container isn't adopted: it may have been meant to stay alone.
    if own["enable"] != nil, isEnabled == nil { return }
    guard isEnabled == true || own["policy"] != nil else {
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
      name: WorkerNaming.valid(own["name"] ?? WorkerNaming.natural(container), container.id))
    guard readPolicy(own, into: &wish) else { return }
    if let name = own["name"], name != wish.name {
      problems.append(
        "\(container.term("name", shown(name))): not a worker's name, `\(wish.name)` is used; a "
          + "name has "
          + NameRule.text)
    }
    wish.importance = importance(own)
    wish.mayTerminate = flag("may_terminate", own) ?? false
    wish.isShadow = isShadow(own)
    wish.healthChecks = healthChecks(own)
    wish.settings = settings(own)
    self.wish = wish
  }

  private func term(_ key: String, _ value: String) -> String { container.term(key, value) }

  /// Drops the labels of the image. An image's author is a stranger, so these labels have no effect
  /// unless the container itself has the label `dormouse.image_labels=true`. A runtime doesn't
  /// report the origin of a label, so a label with the image's value counts as the image's.
  private mutating func dropLabelsOfImage(_ own: inout [String: String]) {
    guard let image = container.imageLabels else {
      if !own.isEmpty {
        problems.append(
          "not adopted: its image can't be read, so it isn't known which labels are the image's")
      }
      own = [:]
      return
    }
    let theirs = own.filter { image[Self.prefix + $0.key] == $0.value }
    for key in theirs.keys { own[key] = nil }
    if flag(Self.imageLabel, own) == true {
      own.merge(theirs) { own, _ in own }
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
  private static let ownLabels: Set<String> = [
    "enable", healthLabel, imageLabel, "importance", "may_terminate", "mode", "name", "policy",
  ]

  /// Reads the policy. The result is false if it can't be a policy's name.
  private mutating func readPolicy(_ own: [String: String], into wish: inout Wish) -> Bool {
    guard let name = own["policy"] else { return true }
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

  private mutating func flag(_ key: String, _ own: [String: String]) -> Bool? {
    switch own[key] {
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

  private mutating func importance(_ own: [String: String]) -> Int? {
    guard let text = own["importance"] else { return nil }
    if let number = Int(text), (0...100).contains(number) { return number }
    problems.append(
      "\(term("importance", shown(text))): ignored; allowed is a number from 0 to 100")
    return nil
  }

  private mutating func isShadow(_ own: [String: String]) -> Bool {
    switch own["mode"] {
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
  private mutating func healthChecks(_ own: [String: String]) -> [String] {
    guard let value = own[Self.healthLabel] else { return [] }
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

  private mutating func settings(_ own: [String: String]) -> [String] {
    var settings: [String] = []
    for (key, value) in own.sorted(by: { $0.key < $1.key }) where !Self.ownLabels.contains(key) {
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
