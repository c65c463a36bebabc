import Control
import Linux

/// Reads `--machine KEY=VALUE,…`: the costs of operations, in the units of policy files.
enum MachineSettings {
  /// Reads a list, or a file with a line for each setting, in which `#` begins a comment.
  static func read(_ text: String) throws -> [(String, String)] {
    let isFile = !text.contains("=")
    let source: String
    do {
      source = isFile ? try readText(text) : text
    } catch {
      throw CommandFailure(.notDone, "can't read --machine: \(error)")
    }
    return try source.split { isFile ? $0.isNewline : $0 == "," }.compactMap { line in
      let bare = line.split(separator: "#", omittingEmptySubsequences: false).first ?? ""
      let fields = bare.split(separator: "=", maxSplits: 1).map { field in
        String(field.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      }
      if fields.isEmpty || bare.allSatisfy(\.isWhitespace) { return nil }
      guard fields.count == 2 else {
        throw CommandFailure(.usage, "--machine takes KEY=VALUE, not '\(escaped(String(bare)))'")
      }
      return (fields[0], fields[1])
    }
  }
}
