import CLinux
import Glibc
import Linux

/// Two processes with one address space: between vfork and exec, or by clone(CLONE_VM). What is freed
/// for one is gone for the other.
enum SharedMemoryMaps {
  /// - Parameter compare: 1: they share, 0: they don't, negative: can't be told.
  static func check(
    _ processes: [ProcessStat],
    compare: (Int32, Int32) -> Int32 = { clinux_share_memory($0, $1) }
  ) throws(HibernationError) {
    for (index, one) in processes.enumerated() {
      for other in processes[..<index] {
        if let why = relation(of: one.pid, to: other.pid, by: compare) {
          throw Eligibility.refuse(one, why, aftermath: .intact)
        }
      }
    }
  }

  /// What speaks against it; `nil`: each has its own.
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

  /// Where kcmp(2) isn't permitted. One address space can't show two faces: neither in how much of
  /// each mapping is in memory, nor in what is there. (A forked child's differs from its parent's at
  /// least in its thread's number, which the C library keeps.) A reading that is repeated and still the
  /// same wasn't taken in the middle of a change: the kernel may change what smaps shows of a process that is
  /// stopped (swap, compaction, idle page tracking), and contents it doesn't.
  private static func haveDifferentMemory(_ one: Int32, _ other: Int32) -> Bool {
    // A process that has ended shares nothing: what follows finds that out.
    guard let first = try? readFile("/proc/\(one)/smaps"),
      let second = try? readFile("/proc/\(other)/smaps"),
      // It has ended just now.
      let again = try? readFile("/proc/\(one)/smaps")
    else { return false }
    return first == again && first != second || haveDifferentContents(one, other)
  }

  private static let pieceLength: UInt64 = 64 * 1024
  /// Of memory that is compared, in bytes; further on there is hardly anything else.
  private static let limit: UInt64 = 64 << 20

  private static func haveDifferentContents(_ one: Int32, _ other: Int32) -> Bool {
    // The same.
    guard let mappings = try? MemoryMapping.all(of: one), let mine = try? ProcessMemory(pid: one),
      let theirs = try? ProcessMemory(pid: other)
    else { return false }
    var compared: UInt64 = 0
    // The thread-locals and the stack are at the end.
    for mapping in mappings.reversed()
    where mapping.writable && !mapping.shared && mapping.anonymous > 0 {
      for start in stride(from: mapping.start, to: mapping.end, by: Int(pieceLength)) {
        let count = Int(min(pieceLength, mapping.end - start))
        // What can't be read isn't compared.
        guard compared < limit, let first = try? mine.readBytes(at: start, count: count),
          let second = try? theirs.readBytes(at: start, count: count),
          // The same.
          let again = try? mine.readBytes(at: start, count: count)
        else { break }
        if first == again, first != second { return true }
        compared += UInt64(count)
      }
    }
    return false
  }
}
