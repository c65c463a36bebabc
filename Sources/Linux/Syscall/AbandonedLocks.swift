import CLinux
import Glibc

/// The locks of flock(2) that a killed process still has because it can't end: a thread of it waits
/// in the kernel for a file system that doesn't answer, and keeps the process's files open.
///
/// SIGKILL is pending for such a thread, so it never executes an instruction of its program again
/// (get_signal in the kernel's kernel/signal.c). Only the call in which it waits may still have an
/// effect. The locks are released through copies of the thread's descriptors. That takes Linux 6.9
/// and the right to trace the process.
public enum AbandonedLocks {
  /// The names of threads whose calls change no worker, image or record. They wait for files and
  /// sockets that belong to others. A log or a socket that one renames or removes is in a directory
  /// of the daemon: if that doesn't answer, no other daemon can use it either.
  private static let harmless = Set(
    ["apart", "close", "fifo", "files", "log", "meas", "stored"].map { "dormouse-\($0)" })

  /// Releases the locks of a killed process that has locked this file.
  ///
  /// - Returns: false if no such process is the reason why the file is locked.
  public static func release(on file: Descriptor) -> Bool {
    // Without the kernel's list nothing is released, and the file stays locked.
    guard let inode = file.status?.st_ino, let locks = try? readText("/proc/locks") else {
      return false
    }
    return holders(of: inode, in: locks).contains { release(of: $0) }
  }

  /// The processes that have locked files of this inode number by flock(2). The files may be on
  /// different file systems: for some of them, the list has another device than stat(2).
  static func holders(of inode: UInt, in locks: String) -> [Int32] {
    locks.split(separator: "\n").compactMap { line in
      guard let lock = FileLocks.Lock(line), lock.pid > 0 else { return nil }
      let columns = lock.identity.split(separator: " ")
      return columns[0] == "FLOCK" && columns[2].hasSuffix(":\(inode)") ? lock.pid : nil
    }
  }

  /// Releases all locks of a process that was killed, if the threads that are left can't change
  /// what the locks protect.
  ///
  /// - Returns: false if the process may still have locks.
  public static func release(of pid: Int32) -> Bool {
    do throws(SystemCallError) {
      guard try ProcessIdentity.current(of: pid).isEnding else { return false }
      var waiting: [Int32] = []
      for thread in try threads(of: pid) {
        let stat = try ProcessStat.read(thread: thread, of: pid)
        if stat.state.isEnded { continue }
        // An exiting thread closes its descriptors, which can't be copied any more.
        guard stat.state == .uninterruptible, !stat.isExiting, harmless.contains(stat.name) else {
          return false
        }
        waiting.append(thread)
      }
      for thread in waiting { try releaseLocks(ofThread: thread, in: pid) }
      return true
    } catch { return false }  // The process ends at this moment, or may not be traced.
  }

  private static func releaseLocks(ofThread thread: Int32, in pid: Int32) throws(SystemCallError) {
    let pidfd = try Descriptor.pidfd(ofThread: thread)
    // The process makes no new thread. So if it has this one still, the pidfd is that thread's.
    _ = try ProcessStat.read(thread: thread, of: pid)
    let directory = "/proc/\(pid)/task/\(thread)/fdinfo"
    for number in try listNumbers(directory) {
      let lines = try readText("\(directory)/\(number)").split(separator: "\n")
      let isLocked = lines.contains {
        $0.hasPrefix("lock:") && $0.split(separator: " ").contains("FLOCK")
      }
      guard isLocked else { continue }
      // The close of the copy may wait for the file system, too.
      let copy = Descriptor(
        foreign: try shim("pidfd_getfd", on: "thread \(thread)") {
          clinux_pidfd_getfd(pidfd.raw, number)
        })
      copy.unlock()
    }
  }
}
