import Glibc

/// The repository that these tests belong to.
public enum SourceTree {
  /// Its directory, without a slash at the end.
  public static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

  /// The text of a file of the repository.
  public static func text(_ path: String) throws -> String {
    guard let file = fopen("\(root)/\(path)", "r") else {
      throw TestFailure("\(path): errno \(errno)")
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 {
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The path of a test suite that documents call `LifecycleTests/LadderTests`: in that folder of
  /// `Tests`, or in one below. Relative to the root; nil: it doesn't exist.
  public static func test(_ name: String) -> String? {
    let parts = name.split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    let folder = "Tests/\(parts[0])"
    let folders = [folder] + entries("\(root)/\(folder)").map { "\(folder)/\($0)" }
    return folders.map { "\($0)/\(parts[1]).swift" }.first { access("\(root)/\($0)", F_OK) == 0 }
  }

  /// The names in a directory except `.` and `..`; none if it can't be read.
  static func entries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
