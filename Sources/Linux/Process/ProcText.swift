import Glibc

// This file has what reading files in /proc and in cgroups has in common.

extension SystemCallError {
  /// True if the process (or its directory in /proc) doesn't exist any more: ENOENT if it ended
  /// before the open, ESRCH if it ended after.
  public var meansVanished: Bool { code == ENOENT || code == ESRCH }

  /// Returns the failure with the path of a file. `Descriptor` doesn't know its path.
  public func on(_ path: String) -> SystemCallError { SystemCallError(call, on: path, code: code) }
}

/// A size in bytes that is larger than any record that is read with one call.
let largestRecord = 8192

/// Reads a kernel file that is one record, as most files in /proc and in cgroups are. One read with
/// a larger buffer returns all of it, and no second read is needed to find the end.
func readRecord(_ path: String) throws(SystemCallError) -> [UInt8] {
  do throws(SystemCallError) {
    let bytes = try Descriptor.open(path, O_RDONLY | O_NONBLOCK).read(upTo: largestRecord)
    if bytes.count < largestRecord { return bytes }
  } catch { throw error.on(path) }
  return try readFile(path)
}

/// Makes the error for a kernel file whose content differs from the kernel's documentation.
func malformed(_ path: String) -> SystemCallError {
  SystemCallError("parse", on: path, code: EBADMSG)
}

extension Collection where Element == UInt8, SubSequence: Collection {
  /// Parses `12` or `12.34`; nil for anything else.
  func decimal() -> Double? {
    let point = firstIndex(of: UInt8(ascii: "."))
    guard let whole: UInt64 = self[startIndex..<(point ?? endIndex)].number() else { return nil }
    guard let point else { return Double(whole) }
    let digits = self[index(after: point)...]
    guard let fraction: UInt64 = digits.number() else { return nil }
    return Double(whole) + Double(fraction) / digits.reduce(1.0) { scale, _ in scale * 10 }
  }

  /// Parses digits; nil for anything else, and on overflow.
  func number<Number: FixedWidthInteger>(radix: Number = 10) -> Number? {
    guard !isEmpty else { return nil }
    var value: Number = 0
    for byte in self {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      default: return nil
      }
      guard Number(digit) < radix else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: radix)
      let (sum, carry) = product.addingReportingOverflow(Number(digit))
      if overflow || carry { return nil }
      value = sum
    }
    return value
  }

  /// Splits the text at blanks and tabs.
  func words() -> [SubSequence] {
    split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
  }

  func lines() -> [SubSequence] { split(separator: UInt8(ascii: "\n")) }
}

/// Returns the text after a key at the start of a line, up to the line's end, without leading
/// blanks. It returns nil if no line begins with the key. It is meant for files that are read
/// often: other lines aren't parsed.
///
/// - Parameter key: the key with its separator from the value, such as `MemTotal:` or `usage_usec
///   `.
func value(of key: StaticString, in bytes: [UInt8]) -> ArraySlice<UInt8>? {
  let range = bytes.withUnsafeBytes { text -> Range<Int>? in
    guard let base = text.baseAddress else { return nil }
    let newline = Int32(UInt8(ascii: "\n"))
    func endOfLine(_ start: Int) -> Int {
      memchr(base + start, newline, text.count - start).map { base.distance(to: $0) }
        ?? text.count
    }
    var start = 0
    while start + key.utf8CodeUnitCount <= text.count {
      guard memcmp(base + start, key.utf8Start, key.utf8CodeUnitCount) == 0 else {
        start = endOfLine(start) + 1
        continue
      }
      let value = start + key.utf8CodeUnitCount
      let end = endOfLine(value)
      let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
      return (text[value..<end].firstIndex { !isBlank($0) } ?? end)..<end
    }
    return nil
  }
  return range.map { bytes[$0] }
}

/// Calls `body` for each line of the form `Key: value`. The value has no leading blanks.
func forEachField(
  _ bytes: [UInt8], _ body: (_ key: String, _ value: ArraySlice<UInt8>) -> Void
) {
  for line in bytes.lines() {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
    let value = line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    body(String(decoding: line[..<colon], as: UTF8.self), value)
  }
}

/// Parses a size such as `16 kB` and returns it in bytes.
func kilobytes(_ value: ArraySlice<UInt8>) -> Int64? {
  guard let first = value.words().first, let count: Int64 = first.number() else { return nil }
  return count.multipliedReportingOverflow(by: 1024).partialValue
}

/// Lists the names in a directory, without `.` and `..`.
public func listDirectory(_ path: String, onlyDirectories: Bool = false) throws(SystemCallError)
  -> [String]
{
  let directory = try opening(path) { () throws(SystemCallError) in
    try pointerCall("opendir", path: path) { opendir($0) }
  }
  defer { closedir(directory) }
  var names: [String] = []
  do throws(SystemCallError) {
    while let entry = try nextEntry(of: directory, at: path) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      let wanted = !onlyDirectories || entry.pointee.d_type == UInt8(DT_DIR)
      if name != "." && name != ".." && wanted { names.append(name) }
    }
  } catch {
    // If a process ends while its directory is read, the list is shorter.
    if !error.meansVanished { throw error }
  }
  return names
}

/// Lists the entries of a directory that are numbers: processes, threads, descriptors.
func listNumbers(_ path: String) throws(SystemCallError) -> [Int32] {
  try listDirectory(path).compactMap { $0.utf8.first == UInt8(ascii: "-") ? nil : Int32($0) }
}
