import Glibc
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

/// A directory of its own, with files in it; gone at the end.
final class ScratchDirectory {
  let path: String
  private var made: [String] = []

  init(_ files: [String: String] = [:]) throws {
    var template = Array("/tmp/dormouse-policyfile-XXXXXX".utf8CString)
    path = try #require(
      template.withUnsafeMutableBufferPointer { buffer -> String? in
        guard let base = buffer.baseAddress, mkdtemp(base) != nil else { return nil }
        return String(cString: base)
      })
    for (name, text) in files { try write(name, text) }
  }

  func write(_ name: String, _ text: String) throws {
    var directory = path
    for part in name.split(separator: "/").dropLast() {
      directory += "/\(part)"
      if mkdir(directory, 0o700) == 0 { made.append(directory) }
    }
    made.append("\(path)/\(name)")
    let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    try #require(file >= 0)
    defer { close(file) }
    let bytes = Array(text.utf8)
    #expect(Glibc.write(file, bytes, bytes.count) == bytes.count)
  }

  func load(_ name: String = "", environment: [String: String] = [:]) -> ParseResult<
    DaemonConfiguration
  > {
    ConfigurationFile.load(
      path: name.isEmpty ? path : "\(path)/\(name)", library: library, environment: environment)
  }

  /// What is said, without the directory's name.
  func rendered(_ result: ParseResult<DaemonConfiguration>) -> String {
    result.rendered.replacing("\(path)/", with: "")
  }

  deinit {
    // What is inside of a directory comes after it.
    for name in made.reversed() { remove(name) }
    rmdir(path)
  }
}
