import Policy

/// A key in which two policies differ.
public struct PolicyDifference: Hashable, Sendable {
  public var path: String
  /// `nil`: the policy has no such key; both have all of them, at present.
  public var left: String?
  public var right: String?
  /// What the step from left to right means for workers; `nil` where it takes more than a sentence.
  public var meaning: String?
}

extension PolicyFile {
  /// The keys whose values differ, in the order of the documentation. The name isn't one of them.
  public static func differences(
    from left: LifecyclePolicy, to right: LifecyclePolicy
  ) -> [PolicyDifference] {
    // `ps` asks for each worker.
    if left == right { return [] }
    let theirs = Dictionary(values(of: right).map { ($0.path, $0.text) }) { first, _ in first }
    return values(of: left).compactMap { value in
      let other = theirs[value.path]
      guard value.path != "name", other != value.text else { return nil }
      let meaning = other.flatMap { DifferenceMeaning.of(value.path, left: value.text, right: $0) }
      return PolicyDifference(
        path: value.path, left: value.text, right: other, meaning: meaning)
    }
  }
}

/// What a changed value means.
enum DifferenceMeaning {
  static func of(_ path: String, left: String, right: String) -> String? {
    if let sentence = words[path]?[right] { return sentence }
    // Of a longest time `never` is the most, of a largest size the least.
    let never = path == "hibernate.at_once_up_to" ? 0 : Double.infinity
    guard let (less, more) = amounts[path], let from = left == "never" ? never : amount(left),
      let to = right == "never" ? never : amount(right), from != to
    else { return nil }
    return to < from ? less : more
  }

  /// A number of one unit, for comparison; `nil` where a text is none, or has another kind of unit.
  private static func amount(_ text: String) -> Double? {
    if text == "unlimited" { return .infinity }
    guard let quantity = Quantity(text) else { return nil }
    let scales: [String: Int64] = [
      "": 1_000, "%": 1_000, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000,
      "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30,
    ]
    guard let scale = scales[quantity.unit], let value = quantity.scaled(by: scale) else {
      return nil
    }
    return quantity.negative ? -Double(value) : Double(value)
  }

  /// The keys whose changes have a sentence.
  static var paths: [String] { Array(amounts.keys) + Array(words.keys) }

  /// By path, for a smaller and for a larger value.
  private static let amounts: [String: (less: String, more: String)] = [
    "pressure.sustained_for": (
      "the level rises sooner; short spikes count more",
      "pressure must last longer before anything is done"
    ),
    "pressure.clear_after": (
      "a level ends sooner after memory is back", "a level is held longer after memory is back"
    ),
    "pressure.stalls_count_below": (
      "stalls end workers only when less memory is available",
      "stalls end workers while more memory is available"
    ),
    "pressure.terminate_after": (
      "workers are terminated after a shorter shortage",
      "memory must be short for longer before workers are terminated"
    ),
    "pressure.swap": (
      "workers are ended while more swap is free", "more swap is used before workers are ended"
    ),
    "foreground.max": (
      "fewer workers are in the foreground at once", "more workers are in the foreground at once"
    ),
    "foreground.idle_after": (
      "idle workers leave the foreground sooner", "idle workers stay in the foreground longer"
    ),
    "foreground.cpu_below": (
      "a worker must be quieter to count as idle", "a worker that still works a little is idle"
    ),
    "background.shed_deadline": (
      "workers have less time to free memory", "workers have more time to free memory"
    ),
    "background.task_limit": (
      "background tasks delay suspension for less time",
      "background tasks delay suspension for longer"
    ),
    "background.suspend_after": (
      "workers are suspended sooner in the background",
      "workers run on for longer in the background"
    ),
    "hibernate.max_footprint": (
      "fewer workers are small enough to be hibernated", "larger workers are hibernated, too"
    ),
    "hibernate.min_footprint": (
      "smaller workers are hibernated, too", "small workers stay in memory"
    ),
    "hibernate.after": (
      "suspended workers are hibernated sooner", "suspended workers stay in memory longer"
    ),
    "hibernate.at_once_up_to": (
      "fewer workers are hibernated as soon as they are suspended",
      "larger workers are hibernated as soon as they are suspended"
    ),
    "hibernate.cooldown": (
      "woken workers are hibernated again sooner", "woken workers stay in memory longer"
    ),
    "hibernate.disk.budget": (
      "less disk for images: fewer workers are hibernated at once",
      "more disk for images: more workers are hibernated at once"
    ),
    "hibernate.disk.min_free": (
      "images may fill the disk further", "hibernation stops earlier on a full disk"
    ),
    "hibernate.disk.daily_writes": (
      "fewer hibernations a day", "more hibernations a day, and more disk wear"
    ),
    "hibernate.compression.level": (
      "images are larger, and quicker to write", "images are smaller, and slower to write"
    ),
    "watchdog.launch": (
      "slow launches fail sooner", "workers have longer to get ready"
    ),
    "watchdog.answer": (
      "workers must answer sooner", "workers have longer to answer"
    ),
    "terminate.grace": (
      "workers have less time to end before they are killed",
      "workers have more time to end before they are killed"
    ),
    "terminate.ask": (
      "there is less time to veto a termination", "there is more time to veto a termination"
    ),
    "terminate.settle": (
      "the next worker is terminated sooner; possibly more than needed",
      "freed memory has longer to show before the next termination"
    ),
  ]

  /// By path and new value.
  private static let words: [String: [String: String]] = [
    "mode": [
      "shadow": "decisions are logged, not applied",
      "enforce": "decisions are applied again",
    ],
    "foreground.mode": [
      "manual": "requests decide which worker is in the foreground, not activity",
      "activity": "activity decides which worker is in the foreground",
    ],
    "background.suspend_after": ["never": "no worker is suspended for being in the background"],
    "hibernate.enabled": [
      "false": "suspended workers stay in memory", "true": "suspended workers may be hibernated",
    ],
    "hibernate.after": ["never": "workers are hibernated under pressure or on request only"],
    "hibernate.at_once_up_to": [
      "never": "small workers wait for hibernate.after, as large ones do"
    ],
    "hibernate.max_footprint": ["unlimited": "workers of any size are hibernated"],
    "hibernate.only_if_faster_than_relaunch": [
      "false": "workers are hibernated even if a relaunch would be quicker",
      "true": "workers that launch quicker than they resume aren't hibernated",
    ],
    "hibernate.durability": [
      "synced": "a worker's memory is freed only when the disk has confirmed its image",
      "cached": "a worker's memory is freed before the disk has confirmed its image",
    ],
    "hibernate.encrypt": [
      "false": "images are not encrypted", "true": "images are encrypted",
    ],
    "hibernate.drop_file_pages": [
      "false": "workers' programs stay in memory until the kernel drops them",
      "true": "hibernated workers' programs leave memory, too",
    ],
    "terminate.for_memory": [
      "false": "no worker is terminated for lack of memory",
      "true": "workers may be terminated for lack of memory",
    ],
    "terminate.ask": ["never": "workers are terminated for lack of memory without a notice"],
    "watchdog.on_timeout": [
      "terminate": "a worker that misses a deadline is ended",
      "report": "a missed deadline is only reported",
    ],
    "memory.budget": ["host": "the machine's memory counts, instead of the workers' share alone"],
    "pressure.warning": ["never": "this level is never reached"],
    "pressure.urgent": ["never": "this level is never reached"],
    "foreground.max": ["unlimited": "any number of workers is in the foreground at once"],
  ]
}
