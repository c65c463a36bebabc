import Policy
import PolicyFile

/// A value for one key of a policy, or values for several.
public struct PolicyChange: Hashable, Sendable {
  public var settings: [Setting]

  public struct Setting: Hashable, Sendable {
    /// The path of the key, such as `hibernate.after`.
    public var key: String
    /// The value as a policy file has it.
    public var value: String
    /// The setting as `--set` accepts it.
    public var argument: String { "\(key)=\(value)" }
  }

  init(_ settings: [Setting]) { self.settings = settings }
  init(_ key: String, _ value: String) { settings = [Setting(key: key, value: value)] }
  init(_ key: String, bytes: Int64) { self.init(key, ByteCount(bytes).policyText) }

  var keys: [String] { settings.map(\.key) }

  func applied(to policy: LifecyclePolicy) throws(SettingError) -> LifecyclePolicy {
    try PolicySettings(settings.map(\.argument)).applied(to: policy)
  }

  /// Whether the policy can have these values. It can't if a value contradicts another one of the
  /// policy, or if the change is for one worker and a key applies to all workers together.
  func isPossible(in policy: LifecyclePolicy, ofOneWorker: Bool) -> Bool {
    let arguments = settings.map(\.argument)
    // An error means that a key can't be set for one worker.
    let read = try? ofOneWorker ? PolicySettings.ofOneWorker(arguments) : PolicySettings(arguments)
    // An error means that the values contradict the policy.
    return read.map { (try? $0.applied(to: policy)) != nil } ?? false
  }

  /// A line for a configuration: `policy_overrides: { hibernate: { after: 30s } }`.
  ///
  /// - Parameter worker: the worker whose own policy gets the values; `nil`: the machine's policy.
  public func yaml(worker: String? = nil) -> String {
    OverrideLine.text(settings.map { ($0.key, $0.value) }, worker: worker)
  }
}

/// The changes that can matter, given what is in a history.
struct CandidateChanges {
  let policy: LifecyclePolicy
  /// The policies and sizes of the workers that the change is for.
  let profiles: [WorkerPolicyAndSize]
  let refusedByDisk: Bool
  let endedForMemory: Bool
  /// Whether the history has trims, so that it is known what comes back.
  let hasTrims: Bool

  struct WorkerPolicyAndSize {
    var policy: LifecyclePolicy
    var footprint: ByteCount
    var launch: Duration
    var resume: Duration
  }

  /// The times that are tried, in seconds. Other values would differ too little from one of these.
  private static let times: [Int64] = [5, 15, 30, 60, 120, 300, 900, 3600]
  private static let sizes: [Int64] = (0...14).map { Int64(1) << (20 + $0) }

  var all: [PolicyChange] {
    let text = Dictionary(PolicyFile.values(of: policy).map { ($0.path, $0.text) }) { one, _ in one
    }
    return (times + trims + footprints + switches + disk + order).filter { change in
      change.settings.contains { text[$0.key] != $0.value }
    }
  }

  private var times: [PolicyChange] {
    var changes: [PolicyChange] = []
    func add(_ key: String, _ times: [Int64], never: Bool) {
      changes += times.map { PolicyChange(key, Duration.seconds($0).policyText) }
      if never { changes.append(PolicyChange(key, "never")) }
    }
    if profiles.contains(where: { $0.policy.foreground.mode == .activity }) {
      add("foreground.idle_after", Array(Self.times.prefix(7)), never: false)
    }
    add("background.suspend_after", Array(Self.times.prefix(7)), never: true)
    guard isHibernated else { return changes }
    add("hibernate.after", Self.times, never: true)
    add("hibernate.cooldown", [5, 120, 300], never: false)
    return changes
  }

  private var trims: [PolicyChange] {
    guard hasTrims else { return [] }
    return ["30s", "1m", "2m", "5m", "15m", "never"].map { PolicyChange("trim.after", $0) }
      + ["2m", "5m", "10m", "30m", "1h"].map { PolicyChange("trim.every", $0) }
  }

  private var isHibernated: Bool { profiles.contains { $0.policy.hibernate.enabled } }

  /// Limits of size that would include or exclude a worker.
  private var footprints: [PolicyChange] {
    guard isHibernated else { return [] }
    var changes: [PolicyChange] = []
    let sizes = profiles.map(\.footprint.bytes)
    if let currentMax = policy.hibernate.maxFootprint?.bytes {
      let larger = sizes.filter { $0 > currentMax }.sorted()
      let limits = Self.sizes.filter { limit in
        limit > currentMax && larger.contains { $0 <= limit && $0 > limit / 2 }
      }
      changes += limits.prefix(4).map { PolicyChange("hibernate.max_footprint", bytes: $0) }
      if !larger.isEmpty { changes.append(PolicyChange("hibernate.max_footprint", "unlimited")) }
    }
    let upper = policy.hibernate.maxFootprint?.bytes ?? .max
    let smaller = Self.sizes.filter { limit in
      limit < upper && limit > policy.hibernate.minFootprint.bytes
        && sizes.contains { $0 > limit && $0 <= min(upper, limit * 2) }
    }
    changes += smaller.suffix(2).map { PolicyChange("hibernate.max_footprint", bytes: $0) }
    let currentMin = policy.hibernate.minFootprint.bytes
    let lower = Self.sizes.filter { limit in
      limit < currentMin && sizes.contains { $0 >= limit && $0 < currentMin }
    }
    return changes
      + lower.suffix(2).map { PolicyChange("hibernate.min_footprint", bytes: $0) }
  }

  private var switches: [PolicyChange] {
    var changes: [PolicyChange] = []
    if !isHibernated { changes.append(PolicyChange("hibernate.enabled", "true")) }
    let isSlow = profiles.contains {
      $0.policy.hibernate.onlyIfFasterThanRelaunch && $0.resume > $0.launch
    }
    if isSlow { changes.append(PolicyChange("hibernate.only_if_faster_than_relaunch", "false")) }
    return changes
  }

  private var disk: [PolicyChange] {
    guard refusedByDisk else { return [] }
    let rules = policy.hibernate.disk
    return [2, 4].flatMap { factor in
      [
        PolicyChange("hibernate.disk.daily_writes", bytes: rules.dailyWrites.bytes * factor),
        PolicyChange("hibernate.disk.budget", bytes: rules.budget.bytes * factor),
      ]
    }
  }

  private var order: [PolicyChange] {
    guard endedForMemory else { return [] }
    return ["[band, footprint]", "[band, recency, footprint]", "[band, regret]"].map {
      PolicyChange("terminate.order", $0)
    }
  }
}
