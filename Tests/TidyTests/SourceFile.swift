import Foundation

/// A text file of the repository.
struct SourceFile {
  /// From the repository's directory.
  var path: String
  var lines: [String]
  /// The numbers of lines inside of multi-line strings, which are no code.
  private(set) var textLines: Set<Int> = []

  init(path: String, text: String) {
    self.path = path
    // By bytes: a CR LF isn't a Character of its own.
    lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    if lines.last == "" { lines.removeLast() }
    var isInText = false
    for (number, line) in lines.enumerated() {
      if line.utf8Range(of: "\"\"\"") != nil {
        isInText.toggle()
      } else if isInText {
        textLines.insert(number)
      }
    }
  }

  var name: String { path.split(separator: "/").last.map(String.init) ?? path }
  var isSwift: Bool { path.hasSuffix(".swift") }

  /// What the ratchet counts together: a module, a folder of scripts, or the file itself where it
  /// is in the repository's own directory.
  var area: String {
    let parts = path.split(separator: "/")
    let depth = ["Sources", "Tests", "Examples", "Companions"].contains(parts[0]) ? 2 : 1
    return parts.prefix(parts.count > depth ? depth : max(1, parts.count - 1))
      .joined(separator: "/")
  }

  /// A line without its comment. Inside of a string `//` is part of an address.
  static func code(_ line: String) -> Substring {
    guard let comment = line.utf8Range(of: "//") else { return line[...] }
    if comment > line.startIndex, line[line.index(before: comment)] == ":" { return line[...] }
    return line[..<comment]
  }
}

extension String {
  /// Where the text begins; by bytes, which a debug build can do fast.
  func utf8Range(of text: StaticString) -> String.Index? {
    let offset = withCString { bytes in
      text.withUTF8Buffer { wanted -> Int? in
        wanted.withMemoryRebound(to: CChar.self) { wanted in
          guard let first = wanted.baseAddress, let hit = strstr(bytes, first) else { return nil }
          return UnsafePointer(hit) - bytes
        }
      }
    }
    return offset.map { utf8.index(startIndex, offsetBy: $0) }
  }
}

/// The repository that these tests belong to.
enum Repository {
  static let root: URL = {
    var url = URL(filePath: #filePath)
    for _ in 0..<3 { url.deleteLastPathComponent() }
    return url
  }()

  static let folders = [
    "Sources", "Tests", "Examples", "Companions", "Benchmarks", "Policies", "docs", "scripts",
    "Packaging",
  ]
  private static let endings: Set<String> = [
    "swift", "c", "h", "md", "py", "sh", "js", "mjs", "yaml", "service", "",
  ]

  /// Everything that people write and read.
  static let files: [SourceFile] = {
    var paths = ((try? FileManager.default.contentsOfDirectory(atPath: root.path())) ?? [])
      .filter { $0.hasSuffix(".md") || $0 == "Makefile" || $0 == "Package.swift" }
    for folder in folders {
      let all = FileManager.default.enumerator(atPath: root.appending(path: folder).path())
      while let path = all?.nextObject() as? String {
        if path.contains(".build/") { continue }
        paths.append("\(folder)/\(path)")
      }
    }
    return paths.sorted().compactMap { path in
      guard endings.contains((path as NSString).pathExtension), path != Ratchet.path,
        let data = FileManager.default.contents(atPath: root.appending(path: path).path()),
        let text = String(validating: data, as: UTF8.self), !path.hasSuffix("/Package.resolved")
      else { return nil }
      return SourceFile(path: path, text: text)
    }
  }()
}
