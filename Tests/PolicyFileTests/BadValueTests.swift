import Policy
import Testing

@testable import PolicyFile

@Suite struct `Bad values` {
  static let errors: [BadText] = [
    BadText(
      "background: { task_limit: 10 sec }",
      "`task_limit` must be a duration such as `10s`, not `10 sec`", "write `10s`"),
    BadText("background: { task_limit: 10 }", "`task_limit` needs a unit", "write `10s`"),
    BadText("background: { task_limit: -10s }", "`task_limit` can't be negative"),
    BadText(
      "background: { task_limit: 1m30s }",
      "`task_limit` must be a duration such as `10s`, not `1m30s`", "write `90s`"),
    BadText(
      "background: { task_limit: 2 days }",
      "`task_limit` must be a duration such as `10s`, not `2 days`", "write `48h`"),
    BadText(
      "background: { task_limit: 99999999999999999999h }",
      "`task_limit` is too long: at most `87600h`, ten years"),
    BadText("background: { task_limit: 0.1ms }", "`task_limit` is finer than `1ms`"),
    BadText(
      "background: { suspend_after: nevr }",
      "`suspend_after` must be a duration such as `10s`, or `never`, not `nevr`",
      "did you mean `never`?"),
    BadText("memory: { budget: 16 }", "`budget` needs a unit", "write `16MB`"),
    BadText("memory: { budget: -1MB }", "`budget` can't be negative"),
    BadText("memory: { budget: 0B }", "`budget` must be more than zero"),
    BadText(
      "memory: { budget: 9999999999999GB }",
      "`budget` is too big: 64 bits hold at most `8589934591GB`"),
    BadText(
      "hibernate: { max_footprint: 16mb }",
      "`max_footprint` must be a size such as `16MB`, or `unlimited`, not `16mb`", "write `16MB`"),
    BadText(
      "memory: { budget: 2TB }", "`budget` must be a size such as `16MB`, or `host`, not `2TB`",
      "write `2048GB`"),
    BadText(
      "memory: { budget: 50% }", "`budget` must be a size such as `16MB`, or `host`, not `50%`",
      "the units are B, KB, MB and GB"),
    BadText(
      "memory: { budget: }", "`budget` must be a size such as `16MB`, or `host`, and is empty"),
    BadText(
      "hibernate: { disk: { min_free: 101% } }",
      "`min_free` must be from `0%` to `100%`, not `101%`"),
    BadText("hibernate: { disk: { min_free: 5 } }", "`min_free` needs a unit", "write `5%`"),
    BadText("hibernate: { disk: { min_free: -5% } }", "`min_free` can't be negative"),
    BadText(
      "hibernate: { compression: { level: -8 } }",
      "`level` must be a whole number from -7 to 19, not `-8`"),
    BadText(
      "hibernate: { enabled: yes }", "`enabled` must be `true` or `false`, not `yes`",
      "write `true`"),
    BadText(
      "hibernate: { max_footprint: 512KB }",
      "`max_footprint` (512KB) is under `min_footprint` (1MB): nothing would ever be hibernated",
      "to turn hibernation off, write `enabled: false`"),
    BadText(
      "foreground: { max: 0 }",
      "`max` must be a whole number from 1, or `unlimited`, not `0`"),
    BadText(
      "foreground: { mode: activty }", "`mode` must be `manual` or `activity`, not `activty`",
      "did you mean `activity`?"),
    BadText(
      "background: { heartbeat: { every: 15m } }", "`heartbeat` needs `for`",
      "write `heartbeat: { every: 15m, for: 5s }`, or `heartbeat: never`"),
    BadText(
      "early_wake: { bonus: 30 }", "`bonus` must be a whole number from 0 to 29, not `30`"),
    BadText(
      "terminate: { order: band }", "`order` must be a list in `[ ]`, not `band`",
      "write `[band]`"),
    BadText("terminate: { order: [band, band] }", "`band` is given twice in this list"),
    BadText(
      "ladder: { warning: [hibernate, hibernate] }", "`hibernate` is given twice in this list"),
    BadText(
      "ladder: { urgent: [terminate: suspended] }",
      "`urgent` must be `trim`, `hibernate`, `purge`, `warn`, `terminate suspended`,"
        + " `terminate background` or `terminate foreground`, not a mapping",
      "write `terminate suspended`"),
    BadText(
      "ladder: { critical: [terminate background, terminate suspended, terminate foreground] }",
      "`terminate suspended` comes after `terminate background`, which costs more: the "
        + "cheapest rung comes first",
      "move `terminate suspended` in front of `terminate background`"),
    BadText(
      "ladder: { urgent: [hibernate], critical: [warn] }",
      "`critical` has no `terminate`: the ladder may free too little memory",
      "end it with `terminate background, terminate foreground`"),
    BadText(
      "ladder: { urgent: [purge] , warning: [terminate suspended] }",
      "`urgent` does less than `warning`, which includes `terminate suspended`",
      "end `urgent` with `terminate suspended`"),
    BadText(
      "pressure: { urgent: { } }", "`urgent` lists no condition that would raise this level",
      "write `urgent: { available_below: 10% }`, or `urgent: never`"),
    BadText(
      "pressure: { critical: never }",
      "`critical` can't be `never`: its rungs would never be taken",
      "give it the smallest threshold, such as `{ available_below: 5% }`"),
    BadText(
      "pressure: { warning: { stall: { some: 10%, window: 12s } } }",
      "`window` must be from `500ms` to `10s`, not `12s`"),
    BadText(
      "pressure: { warning: { stall: { some: 0%, window: 2s } } }",
      "`some` must be more than zero"),
    BadText(
      "pressure: { warning: { stall: { window: 2s } } }",
      "`stall` needs `some` or `full`, the share of the window that counts as a stall",
      "write `stall: { some: 10%, window: 2s }`"),
    BadText(
      "pressure: { warning: { available_below: 15 } }", "`available_below` needs a unit",
      "write `15%` or `15MB`"),
    BadText(
      "pressure: { warning: { available_below: 100MB }, urgent: { available_below: 10% },"
        + " critical: { available_below: 200MB } }",
      "thresholds out of order: `critical` begins at 200MB available, before `warning` at 100MB",
      "warning, urgent and critical need decreasing values"),
    BadText(
      "name: .hidden", "`name` must be a name such as `my-policy`, not `.hidden`",
      "a name has \(NameRule.text)"),
    BadText(
      "memory: { budget: !!int 5 }",
      "`budget` has a tag (`tag:yaml.org,2002:int`); none is known here",
      "leave the tag out"),
    BadText(
      "memory: !include m.yaml", "`memory` has a tag (`!include`); none is known here",
      "leave the tag out"),
    BadText("[1, 2]", "a policy is a mapping of keys to values, not a list"),
    BadText("? [a]\n: b", "a key must be a word, not a list"),
    BadText(
      "<<: { mode: shadow }", "merge keys (`<<`) aren't supported",
      "write the keys out; an alias may stand for a whole value"),
  ]

  @Test(arguments: errors)
  func `A wrong value in a policy gives one error that says how to correct it`(bad: BadText) {
    let result = policy(bad.text)
    #expect(result.value == nil)
    #expect(result.diagnostics.map(\.message) == [bad.message])
    #expect(result.diagnostics.first?.suggestion == bad.suggestion)
    #expect(result.diagnostics.first?.severity == .error)
  }

  static let warnings: [BadText] = [
    BadText(
      "background: { shed_deadline: 20s }",
      "`shed_deadline` (20s) is longer than `suspend_after` (10s): a worker may be suspended before"
        + " it has answered"),
    BadText(
      "ladder: { critical: [terminate suspended, terminate background] }",
      "`critical` ends with `terminate background`: a foreground worker alone can exhaust "
        + "the memory",
      "end it with `terminate foreground`"),
    BadText(
      "pressure: { warning: { stall: { some: 10%, window: 1s } } }",
      "a window that is not a multiple of `2s` needs a daemon with CAP_SYS_RESOURCE",
      "write `2s`, `4s`, `6s`, `8s` or `10s`"),
  ]

  @Test(arguments: warnings)
  func `A questionable value in a policy that can still work gives a warning`(bad: BadText) {
    let result = policy(bad.text)
    #expect(result.value != nil)
    #expect(result.diagnostics.map(\.message) == [bad.message])
    #expect(result.diagnostics.first?.suggestion == bad.suggestion)
  }

  /// Every key for which the reader asks.
  static let keys = KeyExplorer.policy(.policy).paths()

  @Test(arguments: keys, ["'?!'", "[[]]", "{ '': 1 }"])
  func `A value of the wrong kind is an error for each key of a policy`(key: String, value: String)
  {
    let parts = key.split(separator: ".")
    let text =
      parts.dropLast().map { "\($0): { " }.joined() + "\(parts.last ?? ""): \(value)"
      + String(repeating: " }", count: parts.count - 1)
    let result = policy(text)
    #expect(result.value == nil, "\(text)")
    #expect(!result.errors.contains { $0.message.hasPrefix("syntax") }, "\(result.rendered)")
  }
}
