/// A sentence on each key of `adopt:` in `dormouse.yaml`, for the JSON Schema.
enum AdoptionKeyDescriptions {
  static let all: [String: String] = own.merging(patterns) { first, _ in first }

  private static let own: [String: String] = [
    "adopt": "Rules by which running processes are adopted. The first that matches decides.",
    "adopt.rules": "The name of a file of rules, such as `tsserver`; instead of `match`.",
    "adopt.name": "The rule's name. Its workers are called NAME-PID. Default: rule-N.",
    "adopt.match": "What a process has to be: a mapping, or a list of which one is enough.",
    "adopt.except": "Processes that are left out, although they match.",
    "adopt.mode":
      "`shadow`: decisions are logged, not applied. `manage`: they are applied. Default: shadow.",
    "adopt.may_terminate":
      "`true`: its workers may be terminated when memory runs out. Default: `false`.",
    "adopt.terminal":
      "`true`: also programs that a shell on a terminal watches, or that read from one. Default: `false`.",
    "adopt.limit": "The most workers that the rule has at a time, 1 to 1000. Default: 50.",
    "adopt.importance":
      "0 to 100. Among workers in the same state, a higher one is terminated later. Default: 0.",
    "adopt.policy": "Keys of a policy for the workers of this rule.",
  ]

  private static let patterns: [String: String] = {
    let keys = [
      "command":
        "A pattern for the whole command line, its words joined by blanks, or a list of patterns.",
      "exe": "A pattern for the path of the program, or a list of patterns.",
      "name": "A pattern for the kernel's name of the process (15 bytes), or a list of patterns.",
      "cgroup": "A pattern for the path in the cgroup2 tree, or a list of patterns.",
      "unit": "A pattern for the name of the systemd service or scope, or a list of patterns.",
      "user": "A user's name or number; `me` is the daemon's user.",
      "older_than": "The process has run for at least this long.",
      "min_footprint": "The process has at least this much memory of its own.",
    ]
    var result: [String: String] = [:]
    for section in ["match", "except"] {
      for (key, text) in keys { result["adopt.\(section).\(key)"] = text }
    }
    return result
  }()
}
