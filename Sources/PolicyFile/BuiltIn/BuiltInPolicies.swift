// Written by scripts/embed-policies.

/// The shipped policies as texts, for an executable that was copied somewhere without its files.
enum BuiltInPolicies {
  /// By name, sorted.
  static let all: KeyValuePairs<String, String> = [
    "android": android,
    "developer": developer,
    "ios-5": ios5,
    "iphone-os-3": iphoneOs3,
    "server": server,
    "standard": standard,
  ]

  static func text(of name: String) -> String? { all.first { $0.key == name }?.value }
}
