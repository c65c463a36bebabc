import CLinux
import Glibc

/// The mappings of a process as smaps has shown them, kept for the next hibernation. To make smaps,
/// the kernel walks all pages, which takes longer than all other checks of a second hibernation. A
/// mapping's flags don't change while the mapping stays. /proc/PID/maps shows whether it has
/// stayed, in a tenth of the time.
///
/// Some properties can still change, and a new mapping that looks like ordinary memory may have
/// them. Locked memory must be read from the status. A handler of page faults, and memory for which
/// the kernel permits none (droppable), are found by registering Dormouse's own. If a mapping is
/// sealed, freeing its pages fails, and the hibernation is undone. Only smaps shows whether memory
/// has tags, so there is no memo on a machine that has them.
public struct MappingMemo: Sendable {
  /// One mapping: the hash of its line in maps, and the values that only smaps shows. A daemon has
  /// a memo for each process, with a hundred mappings and more.
  private struct RecordedMapping {
    /// The hash has a random key, so that no program can choose a line with another line's hash.
    let line: Int
    /// The values are in KiB, as in smaps.
    let (anonymous, resident, proportional): (UInt32, UInt32, UInt32)
    let flags: MemoryMapping.Flags

    init(_ mapping: MemoryMapping, _ line: ArraySlice<UInt8>) {
      self.line = MappingMemo.hash(line)
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

  /// Ordered by hash.
  private let recorded: [RecordedMapping]

  /// - Parameter mappings: from smaps. The process has been stopped since before that was read. The
  ///   result is `nil` if maps shows other mappings.
  public init?(pid: Int32, mappings: [MemoryMapping]) {
    self.init(pid: pid, mappings: mappings, canHaveTags: clinux_memory_can_have_tags() == 1)
  }

  init?(pid: Int32, mappings: [MemoryMapping], canHaveTags: Bool) {
    // If maps can't be read, smaps is read the next time.
    guard !canHaveTags, let lines = try? Self.read(pid), lines.count == mappings.count else {
      return nil
    }
    var recorded: [RecordedMapping] = []
    // A daemon keeps this for each worker. `map` of a zip takes room for up to twice as many.
    recorded.reserveCapacity(mappings.count)
    for (mapping, line) in zip(mappings, lines) { recorded.append(RecordedMapping(mapping, line)) }
    recorded.sort { $0.line < $1.line }
    self.recorded = recorded
  }

  private static func read(_ pid: Int32) throws(SystemCallError) -> [ArraySlice<UInt8>] {
    try readFile("/proc/\(pid)/maps").split(separator: 10)
  }

  private static func hash(_ line: ArraySlice<UInt8>) -> Int {
    var hasher = Hasher()
    line.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  /// Returns the process's present mappings, with their recorded properties. It returns `nil` if
  /// one is new and may have properties that only smaps shows.
  public func recall(pid: Int32) throws(SystemCallError) -> [MemoryMapping]? {
    var present: [MemoryMapping] = []
    for line in try Self.read(pid) {
      guard let mapping = MemoryMapping(header: line) else { return nil }
      if let recorded = recorded(Self.hash(line)) {
        present.append(Self.withMemory(recorded.added(to: mapping)))
      } else if Self.isPlain(mapping) {
        present.append(Self.withMemory(mapping))
      } else {
        return nil
      }
    }
    return present
  }

  private func recorded(_ line: Int) -> RecordedMapping? {
    let index = recorded.partitioningIndex { $0.line >= line }
    return index < recorded.count && recorded[index].line == line ? recorded[index] : nil
  }

  /// Whether it is ordinary memory, not of a driver, a file or the kernel.
  private static func isPlain(_ mapping: MemoryMapping) -> Bool {
    let names = ["", "[heap]", "[stack]"]
    return !mapping.shared && !mapping.hasFile
      && (names.contains(mapping.name) || mapping.name.hasPrefix("[anon:"))
  }

  /// Returns the mapping with at least one anonymous page if it is writable: it may have got memory
  /// since.
  private static func withMemory(_ mapping: MemoryMapping) -> MemoryMapping {
    var mapping = mapping
    if mapping.writable { mapping.anonymous = max(mapping.anonymous, pageSize) }
    return mapping
  }
}
