import Policy
import PolicyFile
import TestSupport
import Testing

/// A policy in `Policies/`, as it is shipped.
func shipped(_ name: String) throws -> LifecyclePolicy {
  let path = "\(SourceTree.root)/Policies/\(name).yaml"
  return try #require(PolicyFile.loadWithOrigins(path: path).value).policy
}
