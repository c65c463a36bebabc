import Control
import Linux

/// The file of a picture. It is written under another name and renamed, so that a failure leaves an
/// earlier file unchanged.
struct PictureFile {
  private let path: String
  private let file: StateFile

  init(_ path: String) throws(FileError) {
    self.path = path
    do throws(SystemCallError) { file = try StateFile(path, mode: 0o644) } catch {
      throw FileError(operation: "writing", path: path, code: error.code)
    }
  }

  func write(_ text: String) throws(FileError) {
    do throws(SystemCallError) {
      try file.write(Array(text.utf8))
      try file.commit(.none)
    } catch { throw FileError(operation: "writing", path: path, code: error.code) }
  }

  func discard() { file.discard() }
}
