import CLinux
import Glibc

/// One worker's cgroup (version 2).
public final class WorkerCgroup: Sendable {
  public let path: String
  /// True if another program manages the group (a service manager, a container runtime). Dormouse
  /// lists and counts its processes, but never freezes, thaws, limits or removes it. systemd 252
  /// thaws a unit whenever it stops or reloads it. systemd 257 starts programs inside the unit's
  /// group, which blocks PID 1 while the group is frozen.
  public let isExternal: Bool
  /// The group's directory, for clone3(CLONE_INTO_CGROUP).
  public let directory: Descriptor
  /// The file `cgroup.events`, on which the kernel announces changes (POLLPRI).
  private let events: Descriptor

  /// Makes a new, empty group. It replaces one of the same name that has no process.
  ///
  /// - Throws: `inUse` if a process is in a group of that name.
  public static func create(
    in root: CgroupRoot, name: String
  ) throws(CgroupError) -> WorkerCgroup {
    let path = path(in: root, name: name)
    // The old group isn't used again: if a group was killed once through cgroup.kill, the kernel
    // kills each process that is created in it (CLONE_INTO_CGROUP) at birth (seen on Linux 6.18).
    // The old worker may have left groups below it. Those that can't be listed stay, as do groups
    // that have processes, which is an error below.
    for group in ((try? groups(from: path)) ?? [path]).reversed() { rmdir(group) }
    let result = kernelResult(path) { mkdir($0, 0o755) }
    if result != 0 && result != -EEXIST { throw .cannotCreate(path: path, code: -result) }
    let group = try WorkerCgroup(path: path)
    if try group.isPopulated { throw .inUse(path: path) }
    // An earlier daemon may have left the group frozen.
    try group.thaw(until: Deadline(in: .seconds(1)))
    return group
  }

  private static func path(in root: CgroupRoot, name: String) -> String {
    "\(root.path)/worker-\(CgroupRoot.sanitised(name))"
  }

  /// Opens the group of a worker of that name; nil if there is none.
  public static func find(
    in root: CgroupRoot, name: String
  ) throws(CgroupError) -> WorkerCgroup? {
    do throws(CgroupError) { return try WorkerCgroup(path: path(in: root, name: name)) } catch {
      if case .failed(let cause) = error, cause.meansVanished { return nil }
      throw error
    }
  }

  /// Opens the group of a worker of that name by one of its processes, which may be in a group
  /// below it; nil if the process is in no such group.
  public static func find(
    of name: String, containing pid: Int32
  ) throws(CgroupError) -> WorkerCgroup? {
    let wanted = "worker-\(CgroupRoot.sanitised(name))"
    var components = (ProcessDetails.cgroup(of: pid) ?? "").split(separator: "/").map(String.init)
    while let last = components.last, last != wanted { components.removeLast() }
    if components.isEmpty { return nil }
    let group = "/" + components.joined(separator: "/")
    let mounts: [Mount]
    do throws(SystemCallError) { mounts = try Mount.all() } catch { throw .failed(error) }
    for mount in mounts where mount.type == "cgroup2" {
      guard let path = CgroupRoot.directory(of: group, in: mount) else { continue }
      return try WorkerCgroup(path: path)
    }
    return nil
  }

  /// Opens an existing group, such as an earlier daemon's.
  public init(path: String, isExternal: Bool = false) throws(CgroupError) {
    self.path = path
    self.isExternal = isExternal
    do throws(SystemCallError) {
      directory = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
      events = try Descriptor.open("\(path)/cgroup.events")
    } catch {
      throw .failed(error)
    }
  }

  /// This group if Dormouse may freeze it; nil for an external one.
  public var freezer: WorkerCgroup? { isExternal ? nil : self }

  /// The directory's inode. A later group with the same path has another one.
  public var inode: UInt64 { clinux_inode(directory.raw) }

  private func checkIsOurs() throws(CgroupError) {
    if isExternal { throw .external(path: path) }
  }

  /// Lists all processes in the group and in the groups that the worker has made below it.
  public func processes() throws(SystemCallError) -> [Int32] {
    var all: [Int32] = []
    for group in try groups() {
      do throws(SystemCallError) {
        for line in try readFile("\(group)/cgroup.procs").lines() {
          // 0 means a process outside this pid namespace.
          if let pid: Int32 = line.number(), pid > 0 { all.append(pid) }
        }
      } catch {
        // A threaded group lists no processes. The group that it belongs to lists them.
        let isThreaded = error.code == EOPNOTSUPP && group != path
        if !error.meansVanished && error.code != ENODEV && !isThreaded { throw error }
      }
    }
    return all
  }

  /// Lists the group and those below it, parents first.
  private func groups() throws(SystemCallError) -> [String] { try Self.groups(from: path) }

  private static func groups(from path: String) throws(SystemCallError) -> [String] {
    var all = [path]
    var next = 0
    while next < all.count {
      let parent = all[next]
      next += 1
      do throws(SystemCallError) {
        for name in try listDirectory(parent, onlyDirectories: true) {
          all.append("\(parent)/\(name)")
        }
      } catch {
        if !error.meansVanished && error.code != ENOTDIR { throw error }
      }
    }
    return all
  }

  /// True if a worker's first process lives, but isn't in its group: something has moved it, such
  /// as `systemd-run --scope` or `su -l`. False if that isn't known, or if the process is ending:
  /// no list contains it then.
  public func hasLost(_ root: ProcessIdentity) -> Bool {
    // A group that can't be read counts as one that contains the process.
    guard let pids = try? processes() else { return false }
    return !pids.contains(root.pid) && root.life == .lives && !root.isEnding
  }

  /// Throws `movedAway` if `hasLost`. What is done to the group then has no effect on the worker.
  public func checkContains(_ root: ProcessIdentity) throws(CgroupError) {
    if hasLost(root) { throw .movedAway(pid: root.pid) }
  }

  /// Moves a process into the group. That takes milliseconds; starting the process in the group
  /// doesn't.
  public func add(_ pid: Int32) throws(SystemCallError) {
    try writeControl("\(path)/cgroup.procs", "\(pid)")
  }

  /// Freezes the group: its processes get no processor time any more. If it doesn't freeze in time,
  /// it is thawed again. It blocks until the group is frozen.
  public func freeze(until deadline: Deadline) throws(CgroupError) {
    try checkIsOurs()
    recordCalls(waits: true)
    do throws(CgroupError) {
      try write("cgroup.freeze", "1")
      try wait(for: "frozen", toBe: true, until: deadline)
    } catch {
      // A group that is only partly frozen would never run again, because it doesn't count as
      // frozen and isn't thawed.
      _ = try? writeControl("\(path)/cgroup.freeze", "0")
      throw error
    }
  }

  /// Makes the kernel freeze the group, and doesn't wait until that is done: a thread may need the
  /// caller before it can freeze.
  public func beginFreeze() throws(SystemCallError) {
    recordCalls(waits: false)
    try writeControl("\(path)/cgroup.freeze", "1")
  }

  /// - Parameter waits: true: waits a moment for threads that run.
  private func recordCalls(waits: Bool) {
    guard clinux_stop_hides_calls() == 1 else { return }
    // If the processes can't be listed, an interrupted call returns EINTR.
    CallsBeforeStop.record((try? processes()) ?? [], waits: waits)
  }

  /// Thaws the group and waits until it is thawed.
  public func thaw(until deadline: Deadline) throws(CgroupError) {
    try checkIsOurs()
    try write("cgroup.freeze", "0")
    try wait(for: "frozen", toBe: false, until: deadline)
  }

  public var isFrozen: Bool {
    get throws(CgroupError) { try event("frozen") }
  }

  public var isPopulated: Bool {
    get throws(CgroupError) { try event("populated") }
  }

  /// Sends SIGKILL to all processes, frozen or not. They have ended when `isPopulated` is false.
  public func kill() throws(CgroupError) {
    // On some kernels a process that is started in a group is killed at birth if cgroup.kill was
    // ever written there (seen on 6.18). The manager of an external group could then start no
    // process in it again.
    if !isExternal {
      do throws(SystemCallError) {
        try writeControl("\(path)/cgroup.kill", "1")
        return
      } catch {
        // Kernels before Linux 5.14 don't have the file.
        if error.code != ENOENT { throw .failed(error) }
      }
    }
    try killEach()
  }

  /// Kills all processes without cgroup.kill. A child that is forked during one pass over the list
  /// is in the next list. After 100 ms the list may still have processes that end slowly, but none
  /// that wasn't signalled.
  func killEach() throws(CgroupError) {
    var (signalled, members): (Set<Int32>, Set<Int32>) = ([], [])
    for _ in 0..<100 {
      do throws(SystemCallError) {
        let pids = try processes()
        if pids.isEmpty { return }
        // A pid in the list may belong to another process by now. The descriptor refers to the
        // process that the second list names, or to one that has ended.
        let descriptors = pids.compactMap { pid in
          (try? Descriptor.pidfd(of: pid)).map { (pid, $0) }
        }
        members = Set(try processes())
        for (pid, pidfd) in descriptors where members.contains(pid) {
          if clinux_pidfd_send_signal(pidfd.raw, SIGKILL) >= 0 { signalled.insert(pid) }
        }
        usleep(1000)
      } catch {
        throw .failed(error)
      }
    }
    if !signalled.isSuperset(of: members) { throw .timedOut(path: path, waitingFor: "empty") }
  }

  /// Waits until the last process has left the group, and removes it.
  public func remove(until deadline: Deadline) throws(CgroupError) {
    try checkIsOurs()
    do throws(SystemCallError) {
      for group in try groups().reversed() where group != path { rmdir(group) }
    } catch {
      throw .failed(error)
    }
    if access(path, F_OK) != 0 { return }
    try wait(for: "populated", toBe: false, until: deadline)
    var code: Int32 = 0
    // A group stays busy for a moment after its last process has left.
    let removed = waitUntil(deadline) { () throws(Never) in
      code = -kernelResult(path) { rmdir($0) }
      return code != EBUSY
    }
    if code == 0 || code == ENOENT { return }
    if !removed { throw .timedOut(path: path, waitingFor: "empty") }
    throw .failed(SystemCallError("rmdir", on: path, code: code))
  }

  private func write(_ file: String, _ text: String) throws(CgroupError) {
    do throws(SystemCallError) {
      try writeControl("\(path)/\(file)", text)
    } catch {
      throw .failed(error)
    }
  }

  /// Reads a flag of `cgroup.events`. Reading it also arms the next POLLPRI.
  private func event(_ name: StaticString) throws(CgroupError) -> Bool {
    let file = "\(path)/cgroup.events"
    do throws(SystemCallError) {
      let bytes = try events.readBytes(upTo: 256, at: 0, path: file)
      guard let flag = value(of: name, in: bytes) else { throw malformed(file) }
      return flag.elementsEqual("1".utf8)
    } catch { throw .failed(error) }
  }

  private func wait(
    for name: StaticString, toBe wanted: Bool, until deadline: Deadline
  ) throws(CgroupError) {
    while try event(name) != wanted {
      do throws(SystemCallError) {
        if try pollDescriptor(events.raw, for: POLLPRI, until: deadline) { continue }
      } catch {
        throw .failed(error)
      }
      if try event(name) == wanted { return }
      throw .timedOut(path: path, waitingFor: wanted ? "\(name)" : "not \(name)")
    }
  }
}
