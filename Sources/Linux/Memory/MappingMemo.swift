import Glibc

/// What smaps has shown about a process's mappings, for the next hibernation. To make smaps, the kernel walks
/// all pages, which takes longer than all other checks of a second hibernation. A mapping's flags don't
/// change while the mapping stays; /proc/PID/maps shows in a tenth of the time whether it has stayed.
///
/// Three properties can still change: locked memory (read it from the status), a handler of page faults
/// (found by registering Dormouse's own), and sealing (then freeing pages fails, and the hibernation is
/// undone).
public struct MappingMemo: Sendable {
  /// /proc/PID/maps, as lines.
  private let lines: [ArraySlice<UInt8>]
  private let mappings: [MemoryMapping]

  /// - Parameter mappings: from smaps; the process has been stopped since before that. The result is `nil` if
  ///   maps shows other mappings.
  public init?(pid: Int32, mappings: [MemoryMapping]) {
    guard let lines = try? Self.read(pid), lines.count == mappings.count else { return nil }
    self.lines = lines
    self.mappings = mappings
  }

  private static func read(_ pid: Int32) throws(SystemCallError) -> [ArraySlice<UInt8>] {
    try readFile("/proc/\(pid)/maps").split(separator: 10)
  }

  /// The process's present mappings, with their known properties; `nil` if one is new and may have properties
  /// that only smaps shows.
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
