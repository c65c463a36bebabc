import Policy
import Testing

@testable import PolicyFile

/// The repository's `Policies/`.
let shippedDirectory: String = {
  let parts = #filePath.split(separator: "/").dropLast(3)
  return "/" + parts.joined(separator: "/") + "/Policies"
}()

let shipped = ["android", "developer", "ios-5", "iphone-os-3", "server"]
let library = PolicyLibrary(directories: [shippedDirectory])

func policy(_ text: String) -> ParseResult<LifecyclePolicy> {
  PolicyFile.parse(text: text, file: "p.yaml")
}

func configuration(
  _ text: String, environment: [String: String] = [:]
) -> ParseResult<DaemonConfiguration> {
  ConfigurationFile.parse(
    text: text, file: "etc/dormouse.yaml", library: library, environment: environment)
}

/// A splitmix64: the same mutations on every run.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
