import CLinux
import Glibc
import Linux

/// Finds two processes with one address space: between vfork and exec, or by clone(CLONE_VM). Pages
/// that are freed in one are freed in the other too.
enum SharedMemoryMaps {
  /// - Parameter compare: returns 1 if two processes share their memory, 0 if they don't, and a
  ///   negative number if that isn't known.
  static func check(
    _ processes: [ProcessStat],
    compare: (Int32, Int32) -> Int32 = { clinux_share_memory($0, $1) }
  ) throws(HibernationError) {
    for (index, one) in processes.enumerated() {
      for other in processes[..<index] {
        if let reason = relation(of: one.pid, to: other.pid, by: compare) {
          throw Eligibility.refusal(one, reason, aftermath: .intact)
        }
      }
    }
  }

  /// Returns the reason why the processes can't be hibernated, or `nil` if each has its own memory.
  private static func relation(
    of one: Int32, to other: Int32, by compare: (Int32, Int32) -> Int32
  ) -> String? {
    let answer = compare(one, other)
    if answer == 0 || answer == -ESRCH { return nil }
    if answer == 1 { return "shares its memory with process \(other)" }
    if haveDifferentMemory(one, other) { return nil }
    let reason = String(cString: strerror(-answer))
    return
      "may share its memory with process \(other): kcmp failed (\(reason)), and their mappings "
      + "are equal"
  }

  /// Compares two processes if kcmp(2) isn't permitted. If two processes share one address space,
  /// both show the same amount of each mapping in memory, and the same content. (A forked child's
  /// memory differs from its parent's at least in its thread's number, which the C library keeps.)
  /// A reading that gives the same result twice wasn't made in the middle of a change: the kernel
  /// may change what smaps shows of a stopped process (swap, compaction, idle page tracking), but
  /// it doesn't change contents.
  private static func haveDifferentMemory(_ one: Int32, _ other: Int32) -> Bool {
    // A process that has ended shares nothing. The following steps find out that it has ended.
    guard let first = try? readFile("/proc/\(one)/smaps"),
      let second = try? readFile("/proc/\(other)/smaps"),
      // If this fails, the process has ended just now.
      let again = try? readFile("/proc/\(one)/smaps")
    else { return false }
    return first == again && first != second || haveDifferentContents(one, other)
  }

  private static let pieceLength: UInt64 = 64 * 1024
  /// The limit for the compared memory, in bytes. A difference beyond it is unlikely.
  private static let limit: UInt64 = 64 << 20

  private static func haveDifferentContents(_ one: Int32, _ other: Int32) -> Bool {
    // A process that has ended shares nothing.
    guard let mappings = try? MemoryMapping.all(of: one), let mine = try? ProcessMemory(pid: one),
      let theirs = try? ProcessMemory(pid: other)
    else { return false }
    var compared: UInt64 = 0
    // The thread-locals and the stack are at the end.
    for mapping in mappings.reversed()
    where mapping.writable && !mapping.shared && mapping.anonymous > 0 {
      for start in stride(from: mapping.start, to: mapping.end, by: Int(pieceLength)) {
        let count = Int(min(pieceLength, mapping.end - start))
        // Memory that can't be read isn't compared.
        guard compared < limit, let first = try? mine.readBytes(at: start, count: count),
          let second = try? theirs.readBytes(at: start, count: count),
          // Memory that can't be read isn't compared.
          let again = try? mine.readBytes(at: start, count: count)
        else { break }
        if first == again, first != second { return true }
        compared += UInt64(count)
      }
    }
    return false
  }
}
