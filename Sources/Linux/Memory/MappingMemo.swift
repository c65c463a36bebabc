import Glibc

/// What smaps told of a process's mappings, for the next time: making smaps, the kernel goes through all
/// pages, and that takes longer than all else that a second hibernation looks at. Its flags stay as they
/// are while a mapping stays; /proc/PID/maps tells in a tenth of the time whether it has.
///
/// What can have changed all the same is locked memory (to be looked up in the status), a handler of page
/// faults (found out by registering with our own), and sealing (then freeing pages fails, and all of it
/// is undone).
public struct MappingMemo: Sendable {
  /// /proc/PID/maps, as lines.
  private let lines: [ArraySlice<UInt8>]
  private let mappings: [MemoryMapping]

  /// - Parameter mappings: from smaps; the process has been stopped since before that. `nil` where maps
  ///   tells of others.
  public init?(pid: Int32, mappings: [MemoryMapping]) {
    guard let lines = try? Self.read(pid), lines.count == mappings.count else { return nil }
    self.lines = lines
    self.mappings = mappings
  }

  private static func read(_ pid: Int32) throws(SystemCallError) -> [ArraySlice<UInt8>] {
    try readFile("/proc/\(pid)/maps").split(separator: 10)
  }

  /// The mappings of the same process now, with what was known of each; `nil` where one is new, and may
  /// have properties that only smaps tells.
  public func recall(pid: Int32) throws(SystemCallError) -> [MemoryMapping]? {
    var found: [MemoryMapping] = []
    var next = 0
    for line in try Self.read(pid) {
      while next < lines.count, lines[next] != line, isBefore(next, line) { next += 1 }
      if next < lines.count, lines[next] == line {
        found.append(Self.again(mappings[next]))
        next += 1
      } else if let mapping = MemoryMapping(header: line), Self.isPlain(mapping) {
        found.append(Self.again(mapping))
      } else {
        return nil
      }
    }
    return found
  }

  private func isBefore(_ index: Int, _ line: ArraySlice<UInt8>) -> Bool {
    guard let mapping = MemoryMapping(header: line) else { return false }
    return mappings[index].start < mapping.start
  }

  /// Ordinary memory: nothing that a driver, a file or the kernel has a part in.
  private static func isPlain(_ mapping: MemoryMapping) -> Bool {
    let names = ["", "[heap]", "[stack]"]
    return !mapping.shared && !mapping.hasFile
      && (names.contains(mapping.name) || mapping.name.hasPrefix("[anon:"))
  }

  /// It may have memory by now.
  private static func again(_ mapping: MemoryMapping) -> MemoryMapping {
    var mapping = mapping
    if mapping.writable { mapping.anonymous = max(mapping.anonymous, pageSize) }
    return mapping
  }
}
