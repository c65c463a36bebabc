import Policy
import PolicyFile
import Testing

/// A policy of `Policies/`, as it is shipped.
func shipped(_ name: String) throws -> LifecyclePolicy {
  let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
  return try #require(PolicyFile.load(path: "/\(root)/Policies/\(name).yaml").value)
}
