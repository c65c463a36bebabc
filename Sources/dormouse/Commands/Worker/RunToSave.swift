import Control
import Linux
import PolicyFile

/// A configuration with one more worker, for `run --save`. It is checked before the worker is
/// started, and written afterwards.
struct RunToSave {
  private let name: String
  private let file: String
  private let text: String

  init(_ worker: WorkerAddition, of daemon: inout DaemonConnection) throws {
    name = escaped(worker.name)
    guard let configuration = try Self.file(of: &daemon) else {
      throw CommandFailure(
        .notDone,
        "nothing started: this daemon reads no configuration to which \(name) could be added")
    }
    file = configuration
    let before = isAbsent(file) ? "" : try readText(file)
    guard let after = worker.added(to: before) else {
      throw CommandFailure(
        .badConfiguration,
        "nothing started: `workers:` in \(escaped(file)) isn't written in lines of its own, "
          + "and \(escaped(worker.name)) can't be added to it; start it without --save")
    }
    text = after
    try check()
  }

  /// Returns the path of the file that `--save` writes, which is the one that this daemon reads.
  /// The result is nil if it reads none.
  private static func file(of daemon: inout DaemonConnection) throws -> String? {
    guard let path = try daemon.ask(.status).daemon?.configuration else { return nil }
    // If the path is a link, the file behind it is replaced, not the link.
    return isAbsent(path) ? path : try resolvedPath(path)
  }

  private static func replace(_ file: String, with text: String) throws(SystemCallError) {
    let mode = fileStatus(of: file).map { $0.st_mode & 0o777 } ?? 0o644
    let new = try StateFile(file, mode: mode)
    try new.write(Array(text.utf8))
    try new.commit(.data)
  }

  /// The result of removing a worker's entry from the file that `--save` writes.
  enum Removal {
    /// The entry is removed. `leavesNone` is true if the file declares no other worker.
    case done(_ text: String, leavesNone: Bool)
    /// The entry stays, because `--save` hasn't written it.
    case stays(_ text: String)
  }

  /// Removes the entry that `--save` has written. The result is nil if the file has no worker with
  /// this name.
  static func remove(_ worker: String, of daemon: inout DaemonConnection) throws -> Removal? {
    guard let file = try file(of: &daemon), !isAbsent(file) else { return nil }
    let text = try readText(file)
    let (name, path) = (escaped(worker), escaped(file))
    let remaining = WorkerAddition.removed(worker, from: text)
    let check = PolicyCheck.ofThisProcess()
    let declared = ConfigurationFile.load(
      path: file, library: check.library, environment: check.environment, changed: remaining ?? text
    ).value?.workers.map(\.name)
    guard let remaining else {
      guard declared?.contains(worker) == true else { return nil }
      return .stays(
        "\(path) declares \(name), and `run --save` hasn't added it: the next `dormouse reload` "
          + "adds it again; remove it there")
    }
    do throws(SystemCallError) { try replace(file, with: remaining) } catch {
      throw CommandFailure(
        .notDone,
        "\(name) is still in \(path), and the next `dormouse reload` adds it again: \(error)")
    }
    return .done("\(name) is removed from \(path)", leavesNone: declared?.isEmpty == true)
  }

  private func check() throws {
    let check = PolicyCheck.ofThisProcess()
    let errors = ConfigurationFile.load(
      path: file, library: check.library, environment: check.environment, changed: text
    ).errors
    if errors.isEmpty { return }
    PolicyCheck.complain(errors)
    throw CommandFailure(
      .badConfiguration,
      "nothing started: with \(name) in it, \(escaped(file)) would have the errors above")
  }

  func write() throws {
    do throws(SystemCallError) {
      let directory = file[..<(file.lastIndex(of: "/") ?? file.startIndex)]
      try makeDirectories(String(directory))
      try Self.replace(file, with: text)
    } catch {
      throw CommandFailure(.notDone, "\(name) runs, but isn't saved: \(error)")
    }
    Output.complain("\(name) is saved in \(escaped(file)): the daemon starts it from now on")
  }
}
