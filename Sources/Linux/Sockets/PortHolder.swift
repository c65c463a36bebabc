import Glibc

/// A program that listens at a TCP port of this machine.
public struct PortHolder: Hashable, Sendable {
  /// The process's name as ps(1) shows it.
  public var name: String
  public var pid: Int32

  /// Finds the program that listens at the port and was started before the worker. The result is
  /// nil if the worker listens there, if the program is newer (a container's proxy, say), or if
  /// /proc doesn't show it.
  ///
  /// Don't call it on the event loop: it lists the descriptors of all processes.
  public static func earlier(
    than worker: ProcessIdentity, session: Int32?, cgroup: WorkerCgroup?, at port: UInt16
  ) throws(SystemCallError) -> PortHolder? {
    let listeners = try listeners(at: port)
    if listeners.isEmpty { return nil }
    let workerPids = Set(
      try ProcessTree.discover(root: worker, session: session, cgroup: cgroup).pids + [worker.pid])
    if workerPids.contains(where: { hasOpen($0, listeners) }) { return nil }
    var earlier: PortHolder?
    for pid in try listNumbers("/proc") where !workerPids.contains(pid) && hasOpen(pid, listeners) {
      // A process that has ended meanwhile doesn't hold the port any more.
      guard let stat = try? ProcessStat.read(pid) else { continue }
      if stat.startTime >= worker.startTime { return nil }
      earlier = earlier ?? PortHolder(name: stat.name, pid: pid)
    }
    return earlier
  }

  private static func hasOpen(_ pid: Int32, _ listeners: Set<UInt64>) -> Bool {
    // Another user's process can't be read, and one that has ended holds nothing.
    let open = (try? OpenDescriptor.list(of: pid)) ?? []
    return open.contains { $0.kind == .socket && listeners.contains($0.inode) }
  }

  /// The inode numbers of the sockets that listen at the port, as proc_pid_net(5) lists them.
  private static func listeners(at port: UInt16) throws(SystemCallError) -> Set<UInt64> {
    let text = String(port, radix: 16, uppercase: true)
    let ending = Array((":" + String(repeating: "0", count: 4 - text.count) + text).utf8)
    var inodes: Set<UInt64> = []
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
      let table: [UInt8]
      do throws(SystemCallError) { table = try readFile(path) } catch {
        // A kernel without IPv6 has no second table.
        guard error.code == ENOENT else { throw error }
        continue
      }
      for line in table.lines() {
        let columns = line.words()
        guard columns.count > 9, columns[3].elementsEqual("0A".utf8),
          columns[1].suffix(5).elementsEqual(ending), let inode: UInt64 = columns[9].number()
        else { continue }
        inodes.insert(inode)
      }
    }
    return inodes
  }
}
