import Glibc
import JSONLines
import Linux

/// The file of a recording. Each line is written by one call, so a kill loses at most the line that
/// is being written.
struct RecordingFile {
  private let file: Descriptor
  let path: String

  /// Opens a file for writing and replaces its content. `-` is standard output.
  init(writingTo path: String) throws(SystemCallError) {
    self.path = path
    if path == "-" {
      let copy = try systemCall("dup", on: path) { fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) }
      file = Descriptor(owning: copy)
    } else {
      file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, mode: 0o644)
    }
  }

  /// Creates a file in the working directory: `NAME.footprint`, or `NAME-2.footprint` and so on if
  /// that exists.
  init(newFor name: String) throws(SystemCallError) {
    let stem = Self.stem(of: name)
    for number in 1... {
      let path = number == 1 ? "\(stem).footprint" : "\(stem)-\(number).footprint"
      do throws(SystemCallError) {
        file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, mode: 0o644)
        self.path = path
        return
      } catch {
        if error.code != EEXIST || number > 9999 { throw error }
      }
    }
    throw SystemCallError("open", on: stem, code: EEXIST)
  }

  /// A file name made from a worker's name, which may hold any characters.
  static func stem(of name: String) -> String {
    let last = name.split(separator: "/").last.map(String.init) ?? ""
    let safe = last.unicodeScalars.map { scalar -> Character in
      let isPlain =
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
        || "+-_@.".unicodeScalars.contains(scalar)
      return isPlain ? Character(scalar) : "_"
    }
    let stem = String(safe.prefix(60)).drop { $0 == "." || $0 == "-" }
    return stem.isEmpty ? "footprint" : String(stem)
  }

  static func create(
    _ path: String?, for name: String
  ) throws(RecordingFailure) -> RecordingFile {
    do throws(SystemCallError) {
      if let path { return try RecordingFile(writingTo: path) }
      return try RecordingFile(newFor: name)
    } catch { throw .write(error) }
  }

  /// Removes the file if nothing was recorded. It removes only a regular file, not a device or a
  /// pipe.
  func discard() {
    guard path != "-", file.status?.isRegularFile == true else { return }
    discardFile(path)
  }

  func write(_ line: JSON) throws(RecordingFailure) {
    do throws(SystemCallError) { try file.writeAll(line.line + [UInt8(ascii: "\n")]) } catch {
      throw .write(error.on(path))
    }
  }
}
