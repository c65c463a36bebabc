/// Sentences for the JSON Schema on keys that no table of `Keys/` declares, by path; `*` stands for a worker's name. A
/// test holds these complete.
enum KeyDescriptions {
  static let configuration = [
    "policy": "The name of a shipped policy, or the path of a policy file. Default: standard.",
    "policy_overrides": "Keys of a policy that replace those of `policy`.",
    "workers": "The workers, by name.",
    "adopt": "Rules by which running processes are adopted. The first that matches decides.",
    "adopt.rules": "The name of a file of rules, such as `tsserver`; instead of `match`.",
    "adopt.policy": "Keys of a policy for the workers of this rule.",
    "workers.*.health_checks_while_asleep.port": "1 to 65535.",
    "workers.*.health_checks_while_asleep.path":
      "Only requests of this path are answered. Without it, connections that are closed without a byte.",
  ]
}
