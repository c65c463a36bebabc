import Policy
import PolicyFile
import TestSupport
import Testing

/// A policy in `Policies/`, as it is shipped.
func shipped(_ name: String) throws -> LifecyclePolicy {
  return try #require(PolicyFile.load(path: "\(SourceTree.root)/Policies/\(name).yaml").value)
}
