import Glibc

/// A process as one listing of /proc shows it.
///
/// The inode number distinguishes two processes that had the same pid one after the other: the
/// kernel gives each directory of /proc a number from a counter when it makes the directory, and
/// removes it with its process. A process that is listed with another number may still be the same
/// one. A process that is listed with the same number is the same one.
public struct ListedProcess: Hashable, Sendable {
  public var pid: Int32
  public var inode: UInt64

  /// Lists all processes of the machine. Nothing of a process itself is read.
  public static func all() throws(SystemCallError) -> [ListedProcess] {
    let directory = try pointerCall("opendir", path: "/proc") { opendir($0) }
    defer { closedir(directory) }
    var processes: [ListedProcess] = []
    while let entry = try nextEntry(of: directory, at: "/proc") {
      let pid = withUnsafeBytes(of: &entry.pointee.d_name) { name -> Int32? in
        name.prefix { $0 != 0 }.number()
      }
      if let pid { processes.append(ListedProcess(pid: pid, inode: UInt64(entry.pointee.d_ino))) }
    }
    return processes
  }
}

/// Facts that /proc shows about a process in addition to its stat. Each is nil if it may not be
/// read, or if the process has ended.
public enum ProcessDetails {
  /// The maximum length in bytes; longer command lines are cut.
  public static let longestCommand = 4096

  /// Reads the arguments of its command line. They are in the process's memory: if the process is
  /// changing its mappings, the call waits for that.
  public static func command(of pid: Int32) -> [String]? {
    guard
      // An error means that it may not be read, or that the process has ended.
      let bytes = try? Descriptor.open("/proc/\(pid)/cmdline", O_RDONLY | O_NONBLOCK)
        .read(upTo: longestCommand)
    else { return nil }
    return ProcessCommand.arguments(in: bytes)
  }

  /// The path of its program, even of one that was replaced on disk.
  public static func executable(of pid: Int32) -> String? {
    let deleted = " (deleted)"
    return readLink("/proc/\(pid)/exe").map {
      $0.hasSuffix(deleted) ? String($0.dropLast(deleted.count)) : $0
    }
  }

  /// The path of its group in the cgroup2 tree, as proc_pid_cgroup(5) shows it.
  public static func cgroup(of pid: Int32) -> String? {
    // An error means that the process has ended.
    (try? readText("/proc/\(pid)/cgroup")).flatMap(CgroupRoot.groupPath(parsing:))
  }

  /// Whether its standard input is a terminal.
  public static func readsTerminal(_ pid: Int32) -> Bool {
    guard let target = readLink("/proc/\(pid)/fd/0") else { return false }
    return target.hasPrefix("/dev/pts/") || target.hasPrefix("/dev/tty")
      || target == "/dev/console"
  }
}

/// The numbers of this process.
public enum CurrentProcess {
  public static var pid: Int32 { getpid() }
  /// The effective user ID, whose rights this process has.
  public static var user: UInt32 { geteuid() }
}
