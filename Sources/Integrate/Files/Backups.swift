import Linux

/// Copies of files as they were before the first command in them was wrapped. A configuration may
/// have secrets, so only the user can read the copies.
struct Backups {
  let directory: String

  /// The path of a file's copy. Its name is the file's path with `%2F` for each slash.
  func path(of target: String) -> String { "\(directory)/\(Self.name(of: target))" }

  static func name(of target: String) -> String {
    let name = target.reduce(into: "") { name, character in
      switch character {
      case "/": name += "%2F"
      case "%": name += "%25"
      default: name.append(character)
      }
    }
    let maxLength = 200
    if name.utf8.count <= maxLength { return name }
    // The hash is FNV-1a. Only names that are too long for a file system need it.
    let hash = target.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01b3
    }
    let end = name.utf8.suffix(maxLength - 17)
    return String(hash, radix: 16) + "-" + String(decoding: end, as: UTF8.self)
  }

  /// Returns the bytes of a copy; nil if there is none, or if it can't be read.
  func read(_ target: String) -> [UInt8]? {
    // The copy only helps to undo a change, so an unreadable one counts as none.
    try? readFile(path(of: target))
  }

  func save(_ bytes: [UInt8], of target: String) throws(FileProblem) {
    do throws(DirectoryTrustError) {
      let directory = try DirectoryTrust.ofThisProcess.open(directory, making: 0o700)
      do throws(SystemCallError) {
        try StateFile.replace(
          Self.name(of: target), in: directory, with: bytes, durability: .dataAndDirectory)
      } catch {
        throw DirectoryTrustError.failed(error)
      }
    } catch { throw .backup("\(error)") }
  }

  func remove(_ target: String) { discardFile(path(of: target)) }
}
