import CLinux

/// The calls in which the threads of a process wait, as far as they change its mappings or copy them.
public struct MemoryCalls: Sendable {
  /// A thread copies the process's memory for a child, or may do so. True also if a thread can't be read.
  public private(set) var mayFork = false
  private var changes: [(thread: Int32, range: Range<UInt64>)] = []

  /// A thread that runs isn't in the result, also if it is in such a call.
  public init(of pid: Int32) {
    do throws(SystemCallError) {
      for thread in try threads(of: pid) { try read(thread, of: pid) }
    } catch { mayFork = mayFork || !error.meansVanished }
  }

  private mutating func read(_ thread: Int32, of pid: Int32) throws(SystemCallError) {
    let text: String
    do throws(SystemCallError) {
      text = try readText("/proc/\(pid)/task/\(thread)/syscall")
    } catch {
      if error.meansVanished { return }
      throw error
    }
    guard let call = WaitingCall(text) else { return }
    if clinux_may_fork(call.number, call.arguments[0]) == 1 { mayFork = true }
    var ranges: [UInt64] = [0, 0, 0, 0]
    let count = clinux_changed_memory(call.number, call.arguments, &ranges)
    for index in 0..<Int(count) where ranges[index * 2] < ranges[index * 2 + 1] {
      changes.append((thread, ranges[index * 2]..<ranges[index * 2 + 1]))
    }
  }

  /// The one thread that unmaps or moves memory at an address; `nil` if there are none or several.
  public func thread(changing address: UInt64) -> Int32? {
    let found = Set(changes.filter { $0.range.contains(address) }.map(\.thread))
    return found.count == 1 ? found.first : nil
  }
}
