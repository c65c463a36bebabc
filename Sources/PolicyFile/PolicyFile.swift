import Policy
import YAML

/// Reads policy files as a `LifecyclePolicy` and writes them. docs/policy-files.md lists the keys.
public enum PolicyFile {
  /// Reads a policy from a file, with the line of each value. Keys that the file doesn't have get
  /// the defaults, which are those of `ios-5`.
  ///
  /// - Parameter library: the directories in which `extends` searches policies by name.
  public static func loadWithOrigins(
    path: String, library: PolicyLibrary = .builtIn
  ) -> ParseResult<LoadedPolicy> {
    PolicyChain(library: library).load(path: path)
  }
}

/// A policy, and the origin of each of its values.
public struct LoadedPolicy: Hashable, Sendable {
  public var policy: LifecyclePolicy
  public var origins: Origins
}

extension ParseResult {
  func map<Other>(_ transform: (Value) -> Other) -> ParseResult<Other> {
    ParseResult<Other>(value: value.map(transform), diagnostics: diagnostics)
  }
}

extension DiagnosticSink {
  /// Returns a reader of the mapping of which the text consists.
  func topReader(of what: String, expander: Expander? = nil) -> MappingReader? {
    topMapping(of: what).map { MappingReader($0, title: "", sink: self, expander: expander) }
  }

  /// Returns the mapping of which the text consists. An empty text is an empty mapping.
  func topMapping(of what: String, mergesKeys: Bool = false) -> YAMLNode.Mapping? {
    guard let document = Document.compose(self) else { return nil }
    guard let root = mergesKeys ? document.root?.withMergedKeys(self) : document.root else {
      return YAMLNode.Mapping()
    }
    if let tag = root.foreignTag {
      error(at: root.position, "\(what) has no tag such as `\(shortened(tag))`")
      return nil
    }
    switch root {
    case .mapping(let mapping): return mapping
    case _ where root.isEmpty: return YAMLNode.Mapping()
    default:
      error(at: root.position, "\(what) is a mapping of keys to values, not \(root.kind)")
      return nil
    }
  }
}
