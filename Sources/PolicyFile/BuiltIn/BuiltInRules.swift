// Written by scripts/embed-policies.

/// The shipped rules of adoption as texts, for an executable that was copied somewhere without its files.
enum BuiltInRules {
  /// By name, sorted.
  static let all: KeyValuePairs<String, String> = [
    "chrome": chrome,
    "gopls": gopls,
    "pyright": pyright,
    "rust-analyzer": rustAnalyzer,
    "tsserver": tsserver,
    "vscode-server": vscodeServer,
  ]

  static func text(of name: String) -> String? { all.first { $0.key == name }?.value }
}
