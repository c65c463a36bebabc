/// The shipped policies and rules of adoption as texts, for an executable that was copied somewhere
/// without its files. The package embeds the files of this directory.
public enum ShippedPolicies {
  private static let policies: KeyValuePairs = [
    "android": PackageResources.android_yaml,
    "developer": PackageResources.developer_yaml,
    "ios-5": PackageResources.ios_5_yaml,
    "iphone-os-3": PackageResources.iphone_os_3_yaml,
    "server": PackageResources.server_yaml,
    "standard": PackageResources.standard_yaml,
  ]
  private static let rules: KeyValuePairs = [
    "chrome": PackageResources.chrome_yaml,
    "gopls": PackageResources.gopls_yaml,
    "pyright": PackageResources.pyright_yaml,
    "rust-analyzer": PackageResources.rust_analyzer_yaml,
    "tsserver": PackageResources.tsserver_yaml,
    "vscode-server": PackageResources.vscode_server_yaml,
  ]

  public static var names: [String] { policies.map(\.key) }
  public static var ruleNames: [String] { rules.map(\.key) }

  public static func policy(_ name: String) -> String? { text(name, in: policies) }
  public static func rules(_ name: String) -> String? { text(name, in: rules) }

  private static func text(_ name: String, in files: KeyValuePairs<String, [UInt8]>) -> String? {
    files.first { $0.key == name }.map { String(decoding: $0.value, as: UTF8.self) }
  }
}
