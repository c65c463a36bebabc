import Glibc

/// The cgroup (version 2) below which each worker gets a group of its own.
///
/// Only the freezer, `cgroup.kill` and the pressure files are used. Every group has them, so no
/// controller needs to be enabled. Any group in which the daemon may make children is sufficient.
public struct CgroupRoot: Hashable, Sendable {
  /// The directory of the group.
  public let path: String

  /// Finds a parent group and makes `<parent>/<name>` in it. The parent is `DORMOUSE_CGROUP` if
  /// that is set. Otherwise it is this process's own group in the first cgroup2 tree in which that
  /// is possible.
  ///
  /// - Parameter isCounted: see `countMemoryAndTasks`; `<parent>` is changed for that.
  public static func detect(
    name: String? = nil, isCounted: Bool = false
  ) throws(CgroupError) -> CgroupRoot {
    let root = try makeInFirstParent(name)
    if isCounted { root.countMemoryAndTasks(includingAbove: true) }
    return root
  }

  private static func makeInFirstParent(_ name: String?) throws(CgroupError) -> CgroupRoot {
    let name = CgroupRoot.sanitised(name ?? "dormouse-\(getpid())")
    if let given = getenv("DORMOUSE_CGROUP").map({ String(cString: $0) }), !given.isEmpty {
      guard given.hasPrefix("/") else { throw .notAbsolute(given) }
      return try make(in: given, name: name)
    }
    var failure = CgroupError.noTree
    for parent in try groupsOfThisProcess().map(DelegatedGroup.rootForChildren) {
      do throws(CgroupError) { return try make(in: parent, name: name) } catch { failure = error }
    }
    throw failure
  }

  /// Finds a group of that name in one of the same parents; nil if there is none.
  public static func find(name: String) -> CgroupRoot? {
    let name = sanitised(name)
    let given = getenv("DORMOUSE_CGROUP").map { String(cString: $0) } ?? ""
    // If /proc/self/cgroup can't be read, there is no parent for a group.
    for parent in given.isEmpty ? (try? groupsOfThisProcess()) ?? [] : [given] {
      let path = parent.hasSuffix("/") ? parent + name : "\(parent)/\(name)"
      if access("\(path)/cgroup.freeze", F_OK) == 0 { return CgroupRoot(path: path) }
    }
    return nil
  }

  /// Returns the name of the group for the workers of a state directory. Every daemon of that
  /// directory gets the same name, and no other directory has it, however its path ends.
  public static func name(forStateDirectory path: String) -> String {
    // The end of the path makes the name readable.
    "dormouse-\(hexadecimal(hash(path)))-\(path.suffix(40))"
  }

  /// Returns the name that earlier versions gave the group. It isn't unique: nothing may be ended
  /// by this name alone.
  public static func oldName(forStateDirectory path: String) -> String {
    "dormouse-" + path.suffix(80)
  }

  /// Finds the group that an earlier version left; nil if there is none.
  public static func findEarlier(forStateDirectory path: String) -> CgroupRoot? {
    find(name: oldName(forStateDirectory: path))
  }

  private static func make(in parent: String, name: String) throws(CgroupError) -> CgroupRoot {
    let path = parent.hasSuffix("/") ? parent + name : "\(parent)/\(name)"
    let result = kernelResult(path) { mkdir($0, 0o755) }
    if result != 0 && result != -EEXIST { throw .cannotCreate(path: path, code: -result) }
    guard access("\(path)/cgroup.freeze", W_OK) == 0, access("\(path)/cgroup.procs", W_OK) == 0
    else {
      rmdir(path)
      throw .noFreezer(path: path)
    }
    return CgroupRoot(path: path)
  }

  /// Returns the directories of this process's own group, one in each mounted cgroup2 tree.
  static func groupsOfThisProcess() throws(CgroupError) -> [String] {
    do throws(SystemCallError) {
      guard let group = groupPath(parsing: try readText("/proc/self/cgroup")) else { return [] }
      return try Mount.all().filter { $0.type == "cgroup2" }.compactMap {
        directory(of: group, in: $0)
      }
    } catch {
      throw .failed(error)
    }
  }

  /// Returns the path in the line `0::/…` (cgroups(7)).
  static func groupPath(parsing text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("0::/") }.map { String($0.dropFirst(3)) }
  }

  /// Returns the directory at which a mount shows a group. It returns nil if the mount shows only a
  /// part of the tree that doesn't contain the group.
  static func directory(of group: String, in mount: Mount) -> String? {
    if mount.root == "/" { return group == "/" ? mount.point : mount.point + group }
    guard group == mount.root || group.hasPrefix(mount.root + "/") else { return nil }
    return mount.point + group.dropFirst(mount.root.count)
  }

  /// Makes the kernel count the memory and the tasks of each worker, which also shows the worker
  /// whose process its OOM killer ended. The group above must pass on these controllers.
  ///
  /// - Parameter includingAbove: true: they are enabled in the group above, too.
  public func countMemoryAndTasks(includingAbove: Bool) {
    turnOn(["memory", "pids"], includingAbove: includingAbove)
  }

  /// Enables controllers for the groups in this one. With `includingAbove` they are enabled for
  /// this group itself before.
  func turnOn(_ controllers: [String], includingAbove: Bool) {
    let above = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    for group in includingAbove ? [above, path] : [path] {
      for controller in controllers {
        // The kernel refuses this if the group above doesn't have the controller, or if processes
        // are in the group itself. Then nothing is counted (nil in `CgroupAccount`), and setting a
        // limit fails.
        _ = try? writeControl("\(group)/cgroup.subtree_control", "+\(controller)")
      }
    }
  }

  /// Removes the group if no worker is left in it.
  public func remove() { rmdir(path) }

  /// Makes a directory name from any text; different texts have different names. Each byte that
  /// isn't a letter, a digit, `-` or `_` becomes `%` and two hex digits. This includes dots,
  /// because the names of the kernel's own files have dots.
  public static func sanitised(_ name: String) -> String {
    let hex = Array("0123456789abcdef".utf8)
    var result: [UInt8] = []
    for byte in name.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        result.append(byte)
      default:
        result += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    let text = String(decoding: result.prefix(200), as: UTF8.self)
    // File names have at most 255 bytes. The hash covers the characters that are cut off.
    return result.count > 200 ? "\(text)%\(String(hash(name), radix: 16))" : text
  }

  /// Returns the hash of a text by FNV-1a with 64 bits.
  private static func hash(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

/// The reason why a cgroup can't be made or found, or why an operation on it failed.
public enum CgroupError: Error, Hashable, Sendable, CustomStringConvertible {
  case noTree
  case notAbsolute(String)
  case cannotCreate(path: String, code: Int32)
  case noFreezer(path: String)
  /// The group contains processes of another program.
  case inUse(path: String)
  /// There is no such group.
  case notFound(String)
  /// Several groups have this unit name.
  case ambiguous(String, [String])
  case timedOut(path: String, waitingFor: String)
  /// Another program manages the group.
  case external(path: String)
  /// The worker's first process is in another group.
  case movedAway(pid: Int32)
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .noTree:
      "no cgroup version 2 tree is mounted, or the daemon is not in one"
    case .notAbsolute(let path):
      "DORMOUSE_CGROUP=\(path): give an absolute path, such as /sys/fs/cgroup/dormouse"
    case .cannotCreate(let path, let code):
      "can't make the cgroup \(path): \(errorText(code)); run the daemon with "
        + "`systemd-run --user -p Delegate=yes`, or name a delegated group in DORMOUSE_CGROUP"
    case .noFreezer(let path):
      "the daemon can't freeze the cgroup \(path): Linux 5.2 or later and a delegated group are "
        + "needed"
    case .inUse(let path): "the cgroup \(path) contains processes of another program"
    case .notFound(let name): "there is no cgroup (version 2) \(name), or no process is in it"
    case .ambiguous(let name, let paths):
      "several cgroups are called \(name): give the path of one of \(paths.joined(separator: ", "))"
    case .timedOut(let path, let what): "the cgroup \(path) didn't become \(what) in time"
    case .external(let path):
      "the cgroup \(path) is managed by another program; Dormouse only reads it"
    case .movedAway(let pid):
      "its first process (pid \(pid)) has moved to another cgroup; start the program without what "
        + "moves it (systemd-run --scope, snap run, su -l)"
    case .failed(let error): "\(error)"
    }
  }
}
