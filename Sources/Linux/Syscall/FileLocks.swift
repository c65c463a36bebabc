import CLinux
import Glibc

/// File locks that a worker's processes hold: those of flock(2) and both kinds of fcntl(2). Leases
/// aren't counted, because they can be broken.
public enum FileLocks {
  /// Counts the locks by the descriptors of each process (proc_pid_fdinfo(5)): a lock may have been
  /// acquired by a process that has ended, or belong to no process (OFD).
  ///
  /// If a process's descriptors can't be read, its locks are counted by pid (proc_locks(5)). That
  /// is slow: the kernel first stops all calls that lock files, machine-wide, which took 10 to 16
  /// ms here (Linux 6.18).
  public static func held(by pids: [Int32]) -> Int {
    var held: Set<String> = []
    var unreadable: [Int32] = []
    for pid in pids {
      if let identities = ofDescriptors(of: pid) {
        held.formUnion(identities)
      } else {
        unreadable.append(pid)
      }
    }
    // If /proc/locks can't be read either, no lock of these processes is counted.
    if !unreadable.isEmpty, let all = try? readText("/proc/locks") {
      for pid in unreadable { held.formUnion(ofProcess(pid, in: all)) }
    }
    return held.count
  }

  /// Returns a process of a running worker that waits for a lock which no process of the worker
  /// holds; nil if none is found. A stop ends the wait in the kernel's table, so call it before.
  public static func waiter(in tree: ProcessTree) -> Int32? {
    let waiting = Set(tree.pids.filter(isWaiting))
    // If /proc/locks can't be read, nothing is known about the locks.
    guard !waiting.isEmpty, let all = try? readText("/proc/locks") else { return nil }
    return waiter(of: waiting, in: all, members: Set(tree.pids))
  }

  static func waiter(of waiting: Set<Int32>, in locks: String, members: Set<Int32>) -> Int32? {
    var holder: Int32?
    for line in locks.split(separator: "\n") {
      let columns = line.split { $0 == " " || $0 == "\t" }
      guard columns.count >= 9, columns[1] == "->" else {
        holder = Lock(line)?.pid
        continue
      }
      if let holder, !members.contains(holder), let pid = Int32(columns[5]), waiting.contains(pid) {
        return pid
      }
    }
    return nil
  }

  private static func isWaiting(_ pid: Int32) -> Bool {
    // A process that has ended has no threads.
    ((try? threads(of: pid)) ?? []).contains { thread in
      guard let call = WaitingCall.read(thread: thread, of: pid) else { return false }
      return clinux_outside_of(call.number, call.arguments) == CLINUX_OUTSIDE_LOCK
    }
  }

  private static func ofDescriptors(of pid: Int32) -> Set<String>? {
    // A process that has ended, or can't be examined, shows no locks.
    guard let descriptors = try? listDirectory("/proc/\(pid)/fdinfo") else { return nil }
    var identities: Set<String> = []
    for descriptor in descriptors {
      // An error means that the descriptor has been closed meanwhile.
      guard let info = try? readText("/proc/\(pid)/fdinfo/\(descriptor)") else { continue }
      for line in info.split(separator: "\n") where line.hasPrefix("lock:") {
        if let lock = Lock(line.dropFirst("lock:".count)) { identities.insert(lock.identity) }
      }
    }
    return identities
  }

  static func ofProcess(_ pid: Int32, in locks: String) -> Set<String> {
    var identities: Set<String> = []
    for line in locks.split(separator: "\n") {
      if let lock = Lock(line), lock.pid == pid { identities.insert(lock.identity) }
    }
    return identities
  }

  /// One lock, from a line such as `1: FLOCK ADVISORY WRITE 359 00:13:11691 0 EOF`. A line with
  /// `->` after the number belongs to a process that waits for a lock.
  struct Lock {
    var pid: Int32
    /// The lock's kind, mode, file and range. They are the same in every process that shares the
    /// lock.
    var identity: String

    init?(_ line: Substring) {
      let columns = line.split { $0 == " " || $0 == "\t" }
      guard columns.count >= 8, columns[1] != "->",
        columns[1] == "FLOCK" || columns[1] == "POSIX" || columns[1] == "OFDLCK",
        let pid = Int32(columns[4])
      else { return nil }
      self.pid = pid
      identity = ([columns[1], columns[3]] + columns[5...7]).joined(separator: " ")
    }
  }
}
