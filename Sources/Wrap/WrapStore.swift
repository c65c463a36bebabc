import Daemon
import Glibc
import Linux
import Supervision

/// The directories with files that must outlive a wrapper: `wrap/NAME` in the state directory. Each
/// wrapper locks its directory until it ends.
///
///     wrap/.lock            locked while a wrapper adds a directory or checks for old ones
///     wrap/clangd-4711/     a state directory, as a daemon's
struct WrapStore {
  let path: String
  /// The lock of the store. It is held while `self` lives.
  private let lock: Descriptor

  /// Opens the store and waits for its lock.
  init(stateDirectory: String) throws(StartError) {
    path = "\(stateDirectory)/wrap"
    let directory = try openTrusted(path, making: true, as: .shared)
    do throws(SystemCallError) {
      lock = try directory.open(".lock", O_RDWR | O_CREAT, mode: 0o600)
      let raw = lock.raw
      _ = try systemCall("flock", on: "\(path)/.lock") { flock(raw, LOCK_EX) }
    } catch { throw .directory(error) }
  }

  /// Ends the programs that killed wrappers have left behind, if their guardians were killed, too.
  func cleanUpAfterKilledWrappers(socketDirectory: String) {
    // A missing directory contains no wrapper's files.
    for name in (try? listDirectory(path, onlyDirectories: true)) ?? [] {
      // A live wrapper holds the lock. A directory that can't be opened stays as it is.
      guard let lock = try? StateLock(openTrusted("\(path)/\(name)", as: .exclusive)) else {
        continue
      }
      withExtendedLifetime(lock) {
        Self.cleanUp("\(path)/\(name)", socket: "\(socketDirectory)/\(name).sock", roots: [])
      }
    }
  }

  /// The sum of the sizes of all wrappers' images, in bytes: `hibernate.disk.budget` limits all
  /// wrappers together.
  static func imageBytes(in stateDirectory: String) -> Int64 {
    let path = "\(stateDirectory)/wrap"
    var sum: Int64 = 0
    // A missing directory contains no wrapper's files.
    for name in (try? listDirectory(path, onlyDirectories: true)) ?? [] {
      // A wrapper without this directory has no images.
      for image in (try? listDirectory("\(path)/\(name)/images")) ?? [] {
        let status = fileStatus(of: "\(path)/\(name)/images/\(image)")
        sum += status.map { Int64($0.st_size) } ?? 0
      }
    }
    return sum
  }

  /// Ends all processes of a wrapper's program and removes its files, so that no process stays
  /// stopped or frozen and no file stays on disk. A host would end a program without a wrapper,
  /// too.
  ///
  /// - Parameter recorded: root processes that may not be recorded yet.
  static func cleanUp(_ directory: String, socket: String, roots recorded: [ProcessIdentity]) {
    var roots = recorded
    var groups: Set<String> = []
    // Without a boot ID no record is used: records of an earlier boot name other processes.
    let bootID = (try? BootMark.current()) ?? ""
    let store = try? WorkerRecordStore(directory: "\(directory)/workers")
    // Records that can't be read are removed with the directory.
    for record in (try? store?.loadAll())?.records ?? [] where record.bootID == bootID {
      if !roots.contains(record.process) { roots.append(record.process) }
      if let path = record.cgroupPath { groups.insert(path) }
    }
    // The groups may contain processes that were started and not recorded yet.
    let root = CgroupRoot.find(name: CgroupRoot.name(forStateDirectory: directory))
    if let root {
      // A removed group has no children.
      let names = (try? listDirectory(root.path, onlyDirectories: true)) ?? []
      groups.formUnion(names.map { "\(root.path)/\($0)" })
    }
    for path in groups { remove(group: path) }
    root?.remove()
    // If this fails, nothing more can be done.
    for root in roots { try? ProcessTree.killAll(root: root, session: root.pid) }
    discardFile(socket)
    removeAll(directory)
  }

  private static func remove(group path: String) {
    // The group was removed already.
    guard let group = try? WorkerCgroup(path: path) else { return }
    // A group that isn't empty after the kill stays.
    try? group.kill()
    try? group.remove(until: Deadline(in: .seconds(5)))
  }

  /// Removes only files that a wrapper makes, and never a tree that another process has put there
  /// instead.
  private static func removeAll(_ directory: String) {
    for subdirectory in StateDirectory.directories {
      // The directory was never made.
      for name in (try? listDirectory("\(directory)/\(subdirectory)")) ?? [] {
        discardFile("\(directory)/\(subdirectory)/\(name)")
      }
      discardDirectory("\(directory)/\(subdirectory)")
    }
    for file in StateDirectory.files { discardFile("\(directory)/\(file)") }
    discardDirectory(directory)
  }
}
