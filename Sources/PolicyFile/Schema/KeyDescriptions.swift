/// Descriptions for the JSON Schema of keys that no table of `Keys/` declares, by path. `*` means a
/// worker's name. A test checks that none is missing.
enum KeyDescriptions {
  private static let answeredPath = """
    Only requests of this path are answered. Without it, connections that are closed without a \
    byte.
    """

  static let configuration = [
    "policy": "The name of a shipped policy, or the path of a policy file. Default: standard.",
    "policy_overrides": "Keys of a policy that replace those of `policy`.",
    "workers": "The workers, by name.",
    "adopt": "Rules by which running processes are adopted. The first that matches decides.",
    "adopt.rules": "The name of a file of rules, such as `tsserver`; instead of `match`.",
    "adopt.policy": "Keys of a policy for the workers of this rule.",
    "workers.*.health_checks_while_asleep.port": "1 to 65535.",
    "workers.*.health_checks_while_asleep.path": answeredPath,
  ]
}
