import CLinux
import Glibc

/// A short text that is kept with a worker's cgroup, in an extended attribute. It is in the
/// kernel's memory: no full or failing disk can prevent writing it, and it exists only until the
/// group is removed.
extension WorkerCgroup {
  /// The names of the attribute; the first one that the kernel permits is used. Ordinary users may
  /// write `user` (Linux 5.7), root also `trusted`.
  private static let attributeNames = ["user.dormouse.note", "trusted.dormouse.note"]
  private static let maxLength = 200

  /// The note; nil if there is none.
  public var note: String? {
    get throws(SystemCallError) {
      var buffer = [UInt8](repeating: 0, count: Self.maxLength)
      for name in Self.attributeNames {
        let count = clinux_read_attribute(directory.raw, name, &buffer, buffer.count)
        if count >= 0 { return String(decoding: buffer.prefix(Int(count)), as: UTF8.self) }
        // A file system without such attributes has no note.
        if ![-ENODATA, -EOPNOTSUPP].contains(count) {
          throw SystemCallError("read note", on: path, code: -count)
        }
      }
      return nil
    }
  }

  /// Replaces the note.
  ///
  /// - Parameter text: at most 200 bytes; nil: the note is removed.
  public func write(note text: String?) throws(SystemCallError) {
    let bytes = Array((text ?? "").utf8)
    var failure: Int32 = 0
    for name in Self.attributeNames {
      let result = clinux_write_attribute(directory.raw, name, bytes, bytes.count)
      if text != nil, result >= 0 { return }
      let isGone = text == nil && [-ENODATA, -EOPNOTSUPP].contains(result)
      if result < 0, !isGone { failure = -result }
    }
    if failure != 0 { throw SystemCallError("write note", on: path, code: failure) }
  }
}
