import Glibc

/// Processes of this program and user that were killed and can't end. A thread of such a process
/// waits in the kernel, for example for a file system that doesn't answer, and keeps all
/// descriptors of its process open. SIGKILL is pending for the thread, so it never uses them again.
public enum KilledProcesses {
  /// The threads of such processes. The call reads all processes of the machine.
  public static func remainingThreads() -> [Int32] {
    do throws(SystemCallError) {
      let current = try ProcessStat.read(getpid())
      var remaining: [Int32] = []
      for stat in try ProcessTree.living(listNumbers("/proc"), skipsHidden: true)
      where stat.name == current.name && stat.pid != current.pid && stat.identity.isEnding {
        // Another user decides what the sockets of its processes do.
        guard try ProcessStatus.read(stat.pid).user == getuid() else { continue }
        remaining += try threads(of: stat.pid)
      }
      return remaining
    } catch { return [] }  // A process ends at this moment, or a resource is short.
  }
}
