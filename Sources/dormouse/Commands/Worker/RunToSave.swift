import Control
import Glibc
import Linux
import PolicyFile

/// A configuration with one more worker, for `run --save`. It is checked before the worker is
/// started, and written afterwards.
struct RunToSave {
  private let worker: WorkerAddition
  private let file: String

  private var name: String { escaped(worker.name) }

  init(_ worker: WorkerAddition, of daemon: inout DaemonConnection) throws {
    self.worker = worker
    guard let configuration = try Self.file(of: &daemon) else {
      throw CommandFailure(
        .notDone,
        "nothing started: this daemon reads no configuration to which \(escaped(worker.name)) "
          + "could be added")
    }
    file = configuration
    _ = try added(to: try Self.currentText(of: file), orElse: "nothing started")
  }

  /// Returns the path of the file that `--save` writes, which is the one that this daemon reads.
  /// The result is nil if it reads none.
  private static func file(of daemon: inout DaemonConnection) throws -> String? {
    try daemon.ask(.status).daemon?.configuration
  }

  /// Reads the file, which may be absent. Bytes that aren't UTF-8 couldn't be written again.
  private static func currentText(of file: String) throws -> String {
    if isAbsent(file) { return "" }
    guard let text = String(validating: try readFile(file), as: UTF8.self) else {
      throw CommandFailure(
        .badConfiguration, "\(escaped(file)) isn't changed, because it isn't UTF-8 text")
    }
    return text
  }

  /// Replaces the text of the file, which keeps its mode and owner: the daemon may be another user.
  ///
  /// - Parameter change: gets the text as it is now, because an operator or another `run --save`
  ///   may have changed the file meanwhile. nil: the file stays as it is.
  private static func replace(_ file: String, by change: (String) throws -> String?) throws {
    // If the path is a link, the file behind it is replaced, not the link. All else is read by the
    // link's path, because `conf.d` and relative paths are beside the link.
    let target = isAbsent(file) ? file : try resolvedPath(file)
    let deadline = Deadline(in: .seconds(2))
    while true {
      do {
        // From here on, a replacement by another process that began before this one fails.
        let new = try StateFile(target, mode: 0o644)
        if let status = fileStatus(of: target) { try new.keep(modeAndOwnerOf: status) }
        guard let text = try change(try currentText(of: file)) else { return }
        try new.write(Array(text.utf8))
        return try new.commit(.data)
      } catch let error as SystemCallError where error.code == EBUSY && !deadline.hasPassed {
        pauseThread(for: .milliseconds(Int.random(in: 5...50)))
      }
    }
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
    let text = try currentText(of: file)
    let (name, path) = (escaped(worker), escaped(file))
    let remaining = WorkerAddition.removed(worker, from: text)
    let check = PolicyCheck.ofThisProcess()
    let declared = ConfigurationFile.load(
      path: file, library: check.library, environment: check.environment, changed: remaining ?? text
    ).value?.workers.map(\.name)
    guard remaining != nil else {
      guard declared?.contains(worker) == true else { return nil }
      return .stays(
        "\(path) declares \(name), and `run --save` hasn't added it: the next `dormouse reload` "
          + "adds it again; remove it there")
    }
    do {
      try replace(file) { WorkerAddition.removed(worker, from: $0) }
    } catch let error as SystemCallError {
      throw CommandFailure(
        .notDone,
        "\(name) is still in \(path), and the next `dormouse reload` adds it again: \(error)")
    }
    return .done("\(name) is removed from \(path)", leavesNone: declared?.isEmpty == true)
  }

  /// Returns a text of the file with the worker in it.
  ///
  /// - Parameter failure: what has failed, for the error if the result can't be read.
  private func added(to text: String, orElse failure: String) throws -> String {
    guard let text = worker.added(to: text) else {
      throw CommandFailure(
        .badConfiguration,
        "\(failure): `workers:` in \(escaped(file)) isn't written in lines of its own, "
          + "and \(name) can't be added to it; start it without --save")
    }
    let check = PolicyCheck.ofThisProcess()
    let errors = ConfigurationFile.load(
      path: file, library: check.library, environment: check.environment, changed: text
    ).errors
    if errors.isEmpty { return text }
    PolicyCheck.complain(errors)
    throw CommandFailure(
      .badConfiguration,
      "\(failure): with \(name) in it, \(escaped(file)) would have the errors above")
  }

  func write() throws {
    let failure = "\(name) runs, but isn't saved"
    do {
      let directory = file[..<(file.lastIndex(of: "/") ?? file.startIndex)]
      try makeDirectories(String(directory))
      try Self.replace(file) { try added(to: $0, orElse: failure) }
    } catch let error as SystemCallError {
      throw CommandFailure(.notDone, "\(failure): \(error)")
    }
    Output.complain("\(name) is saved in \(escaped(file)): the daemon starts it from now on")
  }
}
