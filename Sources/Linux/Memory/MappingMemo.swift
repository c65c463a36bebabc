import Glibc

/// What smaps has shown about a process's mappings, for the next hibernation. To make smaps, the kernel walks
/// all pages, which takes longer than all other checks of a second hibernation. A mapping's flags don't
/// change while the mapping stays; /proc/PID/maps shows in a tenth of the time whether it has stayed.
///
/// Three properties can still change: locked memory (read it from the status), a handler of page faults
/// (found by registering Dormouse's own), and sealing (then freeing pages fails, and the hibernation is
/// undone).
public struct MappingMemo: Sendable {
  /// What maps doesn't show of a mapping; and of what it shows, only enough to recognise it: a daemon has a memo for each
  /// process, with a hundred mappings and more.
  private struct Known {
    /// Of the line in maps. The hash has a random key, so that no program can choose a line with another's hash.
    let line: Int
    let start: UInt64
    /// In KiB, as smaps has them.
    let (anonymous, resident, proportional): (UInt32, UInt32, UInt32)
    let flags: MemoryMapping.Flags

    init(_ mapping: MemoryMapping, _ line: ArraySlice<UInt8>) {
      self.line = MappingMemo.hash(line)
      start = mapping.start
      anonymous = UInt32(clamping: mapping.anonymous / 1024)
      resident = UInt32(clamping: mapping.resident / 1024)
      proportional = UInt32(clamping: mapping.proportional / 1024)
      flags = mapping.flags
    }

    func added(to header: MemoryMapping) -> MemoryMapping {
      var mapping = header
      mapping.anonymous = UInt64(anonymous) * 1024
      mapping.resident = UInt64(resident) * 1024
      mapping.proportional = UInt64(proportional) * 1024
      mapping.flags = flags
      return mapping
    }
  }

  private let known: [Known]

  /// - Parameter mappings: from smaps; the process has been stopped since before that. The result is `nil` if
  ///   maps shows other mappings.
  public init?(pid: Int32, mappings: [MemoryMapping]) {
    guard let lines = try? Self.read(pid), lines.count == mappings.count else { return nil }
    known = zip(mappings, lines).map(Known.init)
  }

  private static func read(_ pid: Int32) throws(SystemCallError) -> [ArraySlice<UInt8>] {
    try readFile("/proc/\(pid)/maps").split(separator: 10)
  }

  private static func hash(_ line: ArraySlice<UInt8>) -> Int {
    var hasher = Hasher()
    line.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  /// The process's present mappings, with their known properties; `nil` if one is new and may have properties
  /// that only smaps shows.
  public func recall(pid: Int32) throws(SystemCallError) -> [MemoryMapping]? {
    var found: [MemoryMapping] = []
    var next = 0
    for line in try Self.read(pid) {
      guard let mapping = MemoryMapping(header: line) else { return nil }
      while next < known.count, known[next].start < mapping.start { next += 1 }
      let isKnown =
        next < known.count && known[next].start == mapping.start
        && known[next].line == Self.hash(line)
      if isKnown {
        found.append(Self.again(known[next].added(to: mapping)))
      } else if Self.isPlain(mapping) {
        found.append(Self.again(mapping))
      } else {
        return nil
      }
    }
    return found
  }

  /// Ordinary memory: not of a driver, a file or the kernel.
  private static func isPlain(_ mapping: MemoryMapping) -> Bool {
    let names = ["", "[heap]", "[stack]"]
    return !mapping.shared && !mapping.hasFile
      && (names.contains(mapping.name) || mapping.name.hasPrefix("[anon:"))
  }

  /// The same mapping; it may have memory by now.
  private static func again(_ mapping: MemoryMapping) -> MemoryMapping {
    var mapping = mapping
    if mapping.writable { mapping.anonymous = max(mapping.anonymous, pageSize) }
    return mapping
  }
}
