import Glibc

/// One mapping of a process (/proc/PID/smaps, proc_pid_smaps(5)).
public struct MemoryMapping: Sendable, Hashable {
  public var start: UInt64
  public var end: UInt64
  public var readable = false
  public var writable = false
  public var executable = false
  public var shared = false
  /// True if it maps a file. A private copy of one of the file's pages is still anonymous memory.
  public var hasFile = false
  /// The file's inode, or 0.
  public var inode: UInt64 = 0
  /// The file's path, or a kernel name such as `[stack]`.
  public var name = ""
  /// The anonymous memory in it in bytes, without swapped pages.
  public var anonymous: UInt64 = 0
  /// The memory of it that is in swap, in bytes.
  public var swapped: UInt64 = 0
  /// The memory in it that is in RAM, in bytes. `proportional` divides each page by the number of
  /// processes that map it.
  public var resident: UInt64 = 0
  public var proportional: UInt64 = 0
  public var flags: Flags = []

  public var length: UInt64 { end - start }
  public var range: PageRange { PageRange(from: start, to: end) }

  /// The two-letter codes of the VmFlags line that Dormouse uses.
  public struct Flags: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let shared = Flags(rawValue: 1 << 0)  // sh
    public static let locked = Flags(rawValue: 1 << 1)  // lo
    public static let hugetlb = Flags(rawValue: 1 << 2)  // ht
    public static let deviceMemory = Flags(rawValue: 1 << 3)  // io
    public static let pureFrames = Flags(rawValue: 1 << 4)  // pf
    public static let userfault = Flags(rawValue: 1 << 5)  // um, ui
    public static let sealed = Flags(rawValue: 1 << 6)  // sl
    /// Writes to it are tracked: by Dormouse (`WriteTracker`), or by the process itself.
    public static let writesWatched = Flags(rawValue: 1 << 7)  // uw
    public static let wipedOnFork = Flags(rawValue: 1 << 8)  // wf
    public static let hugePages = Flags(rawValue: 1 << 9)  // hg
    /// Only calls and returns write to it, although the kernel shows it as writable. From 2026 on
    /// kernels permit no userfaultfd for it.
    public static let shadowStack = Flags(rawValue: 1 << 10)  // ss
    /// Its memory has tags (arm64's MTE), which are lost when its pages are freed.
    public static let tagged = Flags(rawValue: 1 << 11)  // mt
    /// The kernel may drop its pages at any time (the state of getrandom(3) in glibc 2.41), and
    /// doesn't permit a userfaultfd for it.
    public static let droppable = Flags(rawValue: 1 << 12)  // dp

    static let codes: [(UInt8, UInt8, Flags)] = [
      (ascii("s"), ascii("h"), .shared), (ascii("l"), ascii("o"), .locked),
      (ascii("h"), ascii("t"), .hugetlb), (ascii("i"), ascii("o"), .deviceMemory),
      (ascii("p"), ascii("f"), .pureFrames), (ascii("u"), ascii("m"), .userfault),
      (ascii("u"), ascii("w"), .writesWatched), (ascii("u"), ascii("i"), .userfault),
      (ascii("s"), ascii("l"), .sealed), (ascii("w"), ascii("f"), .wipedOnFork),
      (ascii("h"), ascii("g"), .hugePages), (ascii("s"), ascii("s"), .shadowStack),
      (ascii("m"), ascii("t"), .tagged), (ascii("d"), ascii("p"), .droppable),
    ]

    private static func ascii(_ character: Unicode.Scalar) -> UInt8 {
      UInt8(truncatingIfNeeded: character.value)
    }
  }

  /// Reads the mappings of a process, ordered by address.
  ///
  /// - Throws: ESRCH if there are none: the process is being killed (or is a kernel thread).
  public static func all(of pid: Int32) throws(SystemCallError) -> [MemoryMapping] {
    let text = try readFile("/proc/\(pid)/smaps")
    if text.isEmpty { throw SystemCallError("read", on: "/proc/\(pid)/smaps", code: ESRCH) }
    return parse(text)
  }

  /// Reads the mappings from maps, which is faster than smaps and lacks the sizes of their memory.
  public static func headers(of pid: Int32) throws(SystemCallError) -> [MemoryMapping] {
    let path = "/proc/\(pid)/maps"
    let text = try readFile(path)
    if text.isEmpty { throw SystemCallError("read", on: path, code: ESRCH) }
    return text.lines().compactMap { MemoryMapping(header: $0) }
  }

  /// Parses the text of smaps. Lines that can't be parsed are left out.
  static func parse(_ text: [UInt8]) -> [MemoryMapping] {
    text.withUnsafeBufferPointer { SmapsParser(bytes: $0).parse() }
  }
}

extension MemoryMapping {
  /// Parses a line of /proc/PID/maps; it doesn't have the values that only smaps has.
  init?(header line: ArraySlice<UInt8>) {
    let parsed = line.withUnsafeBufferPointer { SmapsParser(bytes: $0).header(0, $0.count) }
    guard let parsed else { return nil }
    self = parsed
  }
}

/// Parses smaps without making strings of its thousands of lines.
private struct SmapsParser {
  let bytes: UnsafeBufferPointer<UInt8>

  func parse() -> [MemoryMapping] {
    var mappings: [MemoryMapping] = []
    var lineStart = 0
    while lineStart < bytes.count {
      let lineEnd = bytes[lineStart...].firstIndex(of: 10) ?? bytes.count
      parseLine(lineStart, lineEnd, into: &mappings)
      lineStart = lineEnd + 1
    }
    return mappings
  }

  private func parseLine(_ start: Int, _ end: Int, into mappings: inout [MemoryMapping]) {
    guard start < end else { return }
    // Headers begin with a lower-case hexadecimal address. Fields begin with a capital.
    if bytes[start] >= UInt8(ascii: "a") || bytes[start] <= UInt8(ascii: "9") {
      if let mapping = header(start, end) { mappings.append(mapping) }
      return
    }
    guard !mappings.isEmpty else { return }
    let last = mappings.count - 1
    if has(prefix: "Anonymous:", at: start, end) {
      mappings[last].anonymous = decimal(start + 10, end) &* 1024
    } else if has(prefix: "Swap:", at: start, end) {
      mappings[last].swapped = decimal(start + 5, end) &* 1024
    } else if has(prefix: "Rss:", at: start, end) {
      mappings[last].resident = decimal(start + 4, end) &* 1024
    } else if has(prefix: "Pss:", at: start, end) {
      mappings[last].proportional = decimal(start + 4, end) &* 1024
    } else if has(prefix: "VmFlags:", at: start, end) {
      mappings[last].flags = flags(start + 8, end)
    }
  }

  private func has(prefix: StaticString, at start: Int, _ end: Int) -> Bool {
    guard end - start >= prefix.utf8CodeUnitCount else { return false }
    guard let base = bytes.baseAddress else { return false }
    return memcmp(base + start, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
  }

  /// Parses a header such as `55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0   [heap]`.
  func header(_ start: Int, _ end: Int) -> MemoryMapping? {
    let fields = bytes[start..<end].split(
      separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
    guard fields.count >= 5 else { return nil }
    let addresses = fields[0].split(separator: UInt8(ascii: "-"))
    guard addresses.count == 2, let from = hexadecimal(addresses[0]),
      let to = hexadecimal(addresses[1]), fields[1].count >= 4
    else { return nil }

    var mapping = MemoryMapping(start: from, end: to)
    let permissions = fields[1]
    let first = permissions.startIndex
    mapping.readable = permissions[first] == UInt8(ascii: "r")
    mapping.writable = permissions[first + 1] == UInt8(ascii: "w")
    mapping.executable = permissions[first + 2] == UInt8(ascii: "x")
    mapping.shared = permissions[first + 3] == UInt8(ascii: "s")
    mapping.inode = decimal(fields[4].startIndex, fields[4].endIndex)
    mapping.hasFile = mapping.inode != 0
    if fields.count > 5 {
      let name = fields[5].drop { $0 == UInt8(ascii: " ") }
      mapping.name = String(decoding: name, as: UTF8.self)
    }
    return mapping
  }

  private func hexadecimal(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt64? {
    var value: UInt64 = 0
    for digit in digits {
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - 48)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - 87)
      default: return nil
      }
    }
    return value
  }

  private func decimal(_ start: Int, _ end: Int) -> UInt64 {
    var value: UInt64 = 0
    for byte in bytes[start..<end] where byte >= 48 && byte <= 57 {
      value = value &* 10 &+ UInt64(byte - 48)
    }
    return value
  }

  private func flags(_ start: Int, _ end: Int) -> MemoryMapping.Flags {
    var result: MemoryMapping.Flags = []
    for code in bytes[start..<end].split(separator: UInt8(ascii: " ")) where code.count == 2 {
      let (one, two) = (code[code.startIndex], code[code.startIndex + 1])
      for (a, b, flag) in MemoryMapping.Flags.codes where a == one && b == two {
        result.insert(flag)
      }
    }
    return result
  }
}
