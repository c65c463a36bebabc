import Policy
import TestSupport
import Testing
import Testing

@testable import PolicyFile

/// The path of the repository's `Policies/`.
let shippedDirectory: String = {
  let parts = #filePath.split(separator: "/").dropLast(3)
  return "/" + parts.joined(separator: "/") + "/Policies"
}()

let shipped = ["android", "developer", "ios-5", "iphone-os-3", "server", "standard"]
let library = PolicyLibrary(directories: [shippedDirectory])

func policy(_ text: String) -> ParseResult<LifecyclePolicy> {
  PolicyFile.parse(text: text, file: "p.yaml")
}

extension PolicyFile {
  static func parse(text: String, file: String) -> ParseResult<LifecyclePolicy> {
    PolicyChain(library: .builtIn).parse(text: text, file: file).map(\.policy)
  }

  /// Lays the keys of a text over another policy.
  static func parse(
    text: String, file: String, over base: LifecyclePolicy
  ) -> ParseResult<LifecyclePolicy> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let reader = sink.topReader(of: "a policy") else { return sink.result(nil) }
    return sink.result(PolicyReader(scope: .overrides).read(reader, over: base))
  }

  static func load(path: String) -> ParseResult<LifecyclePolicy> {
    loadWithOrigins(path: path).map(\.policy)
  }
}

extension MappingShape {
  /// Returns every key by its path: `hibernate`, `hibernate.disk`, `hibernate.disk.budget`.
  func paths(under prefix: String = "") -> [String] {
    keys.flatMap { key in
      let path = prefix.isEmpty ? key.name : "\(prefix).\(key.name)"
      return [path] + (key.shape.inner?.paths(under: path) ?? [])
    }
  }
}

/// Reads a configuration. A text that names no policy gets `ios-5`, whose values are the defaults
/// of all keys.
func configuration(
  _ text: String, environment: [String: String] = [:]
) -> ParseResult<DaemonConfiguration> {
  let isNamed = text.hasPrefix("policy:") || text.contains("\npolicy:")
  // The built-in `ios-5` isn't a file of this machine.
  return ConfigurationFile.parse(
    text: text, file: "etc/dormouse.yaml", library: isNamed ? library : .builtIn,
    environment: environment, policy: isNamed ? nil : "ios-5")
}

/// Reads a configuration that was imported. Returns its text, too.
func readImport(
  _ result: ParseResult<ImportedConfiguration>, environment: [String: String] = [:],
  mayWarn: Bool = false
) throws -> (text: String, DaemonConfiguration) {
  let text = try #require(result.value, "\(result.rendered)").text
  let parsed = ConfigurationFile.parse(
    text: text, file: "dormouse.yaml", library: library, environment: environment)
  #expect((mayWarn ? parsed.errors : parsed.diagnostics).isEmpty, "\(text)\n\(parsed.rendered)")
  return (text, try #require(parsed.value))
}

extension Scratch {
  func load(_ name: String = "", environment: [String: String] = [:]) -> ParseResult<
    DaemonConfiguration
  > {
    ConfigurationFile.load(
      path: name.isEmpty ? path : "\(path)/\(name)", library: library, environment: environment)
  }

  /// Returns the diagnostics without the directory's name.
  func rendered(_ result: ParseResult<DaemonConfiguration>) -> String {
    result.rendered.replacing("\(path)/", with: "")
  }
}

/// A text, and the message and the suggestion of its only error.
struct BadText: Sendable, CustomTestStringConvertible {
  var text: String
  var message: String
  var suggestion: String?

  init(_ text: String, _ message: String, _ suggestion: String? = nil) {
    (self.text, self.message, self.suggestion) = (text, message, suggestion)
  }

  var testDescription: String { text }
}
