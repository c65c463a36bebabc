import Glibc

/// The repository that these tests belong to.
public enum SourceTree {
  /// Its directory, without a slash at the end.
  public static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

  /// The path of a test suite that documents call `LifecycleTests/LadderTests`: in that folder of
  /// `Tests`, or in one below. Relative to the root; nil: it doesn't exist.
  public static func test(_ name: String) -> String? {
    let parts = name.split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    let folder = "Tests/\(parts[0])"
    let folders = [folder] + entries("\(root)/\(folder)").map { "\(folder)/\($0)" }
    return folders.map { "\($0)/\(parts[1]).swift" }.first { access("\(root)/\($0)", F_OK) == 0 }
  }

  private static func entries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names
  }
}
