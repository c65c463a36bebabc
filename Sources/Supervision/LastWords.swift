import Glibc
import Linux

extension WorkerProcess {
  /// The last line that this run wrote to its log, for people: on one line, 200 characters at most. `nil`
  /// where it wrote nothing, or its log is no file.
  public func lastWords() -> String? {
    guard plan.inheritance == nil else { return nil }
    let place = plan.logPlace
    let tail = try? place.acting { () throws(SystemCallError) in
      // Not waiting for the other end of a FIFO; and a link in our own directory isn't from us.
      let link = place.isElsewhere ? 0 : O_NOFOLLOW
      let file = try Descriptor.open(place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | link)
      var status = stat()
      _ = try systemCall("fstat", on: place.path) { fstat(file.raw, &status) }
      guard status.st_mode & S_IFMT == S_IFREG else { return [UInt8]() }
      let size = Int64(status.st_size)
      // Rotated meanwhile, it begins anew.
      let start = max(logStart <= size ? logStart : 0, size - Self.longestTail)
      _ = try systemCall("lseek", on: place.path) { lseek(file.raw, off_t(start), SEEK_SET) }
      return try file.read(upTo: Int(size - start))
    }
    return tail.flatMap(Self.lastLine)
  }

  private static let longestTail: Int64 = 4096
  private static let longestLine = 200

  static func lastLine(of bytes: [UInt8]) -> String? {
    let lines = bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    let isBlank = { (byte: UInt8) in byte <= UInt8(ascii: " ") || byte == 0x7F }
    guard let line = lines.last(where: { !$0.allSatisfy(isBlank) }) else { return nil }
    let printable = line.map { isBlank($0) ? UInt8(ascii: " ") : $0 }
    let text = String(decoding: printable, as: UTF8.self).drop { $0 == " " }
    return text.count > longestLine ? text.prefix(longestLine) + "…" : String(text)
  }
}
