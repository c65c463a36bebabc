import Glibc

/// Whole files. What fails tells so by `errno`.
enum Files {
  static func read(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { return nil }
    var data = [UInt8](repeating: 0, count: Int(facts.st_size))
    var count = 0
    while count < data.count {
      let step = data.withUnsafeMutableBytes { bytes in
        Glibc.read(file, bytes.baseAddress.map { $0 + count }, bytes.count - count)
      }
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { return nil }
      count += step
    }
    return data
  }

  /// Under another name first: half a file is none.
  static func write(_ data: [UInt8], to path: String) -> Bool {
    let partial = path + ".partial"
    let file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else { return false }
    let isWritten = writeAll(data, to: file)
    return close(file) == 0 && isWritten && rename(partial, path) == 0
  }

  static func writeAll(_ data: [UInt8], to file: Int32) -> Bool {
    var count = 0
    while count < data.count {
      let step = data.withUnsafeBytes { bytes in
        Glibc.write(file, bytes.baseAddress.map { $0 + count }, bytes.count - count)
      }
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { return false }
      count += step
    }
    return true
  }
}

func say(_ text: String) { _ = Files.writeAll(Array("\(text)\n".utf8), to: 1) }
func complain(_ text: String) { _ = Files.writeAll(Array("\(text)\n".utf8), to: 2) }

func quit(saying text: String, code: Int32) -> Never {
  complain(text)
  exit(code)
}

/// `12.0 MB`, of 1024 × 1024 bytes.
func megabytes(_ bytes: Int64) -> String {
  let tenths = (bytes * 10 + (1 << 19)) >> 20
  return "\(tenths / 10).\(tenths.magnitude % 10) MB"
}
