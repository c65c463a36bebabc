import CLinux
import Glibc
import Linux

/// Two processes with one address space: between vfork and exec, or by clone(CLONE_VM). What is freed
/// for one is gone for the other.
enum SharedMemoryMaps {
  static func check(_ processes: [ProcessStat]) throws(HibernationError) {
    for (index, one) in processes.enumerated() {
      for other in processes[..<index] {
        if let why = relation(one.pid, other.pid) {
          throw Eligibility.refuse(one, why, .intact)
        }
      }
    }
  }

  /// What speaks against it; `nil`: each has its own.
  private static func relation(_ one: Int32, _ other: Int32) -> String? {
    let answer = clinux_share_memory(one, other)
    if answer == 0 || answer == -ESRCH { return nil }
    if answer == 1 { return "shares its memory with process \(other)" }
    if haveDifferentMemory(one, other) { return nil }
    let reason = String(cString: strerror(-answer))
    return "may share its memory with process \(other): kcmp can't tell (\(reason)), and their "
      + "mappings are the same"
  }

  /// Where kcmp(2) isn't permitted: one address space can't show two faces, down to how much of each
  /// mapping is in memory. A reading that is repeated and still the same wasn't taken in a change.
  private static func haveDifferentMemory(_ one: Int32, _ other: Int32) -> Bool {
    guard let first = try? readFile("/proc/\(one)/smaps"),
      let second = try? readFile("/proc/\(other)/smaps"),
      let again = try? readFile("/proc/\(one)/smaps")
    else { return false }
    return first == again && first != second
  }
}
