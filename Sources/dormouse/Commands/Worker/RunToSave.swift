import Control
import Linux
import PolicyFile

/// `run --save`: a configuration with one more worker. It is checked before the worker is started, and written after.
struct RunToSave {
  private let name: String
  private let file: String
  private let text: String
  private let mode: UInt32

  init(_ worker: WorkerAddition, _ connection: ConnectionOptions) throws {
    name = escaped(worker.name)
    let path =
      try connection.target().project?.configuration
      ?? DefaultPaths.ofThisProcess().configuration
    // A link's file is replaced, not the link.
    file = isAbsent(path) ? path : try resolvedPath(path)
    mode = fileStatus(of: file).map { $0.st_mode & 0o777 } ?? 0o644
    let before = isAbsent(file) ? "" : try readText(file)
    guard let after = worker.added(to: before) else {
      throw CommandFailure(
        exit: .badConfiguration,
        text: "nothing started: `workers:` in \(escaped(file)) isn't written in lines of its own, "
          + "and \(escaped(worker.name)) can't be added to it; start it without --save")
    }
    text = after
    try check()
  }

  private func check() throws {
    let check = PolicyCheck.ofThisProcess()
    let errors = ConfigurationFile.load(
      path: file, library: check.library, environment: check.environment, changed: text
    ).errors
    if errors.isEmpty { return }
    PolicyCheck.complain(errors)
    throw CommandFailure(
      exit: .badConfiguration,
      text: "nothing started: with \(name) in it, \(escaped(file)) would have the errors above")
  }

  func write() throws {
    do throws(SystemCallError) {
      let directory = file[..<(file.lastIndex(of: "/") ?? file.startIndex)]
      try makeDirectories(String(directory))
      let new = try StateFile(file, mode: mode)
      try new.write(Array(text.utf8))
      try new.commit(.data)
    } catch {
      throw CommandFailure(exit: .notDone, text: "\(name) runs, but isn't saved: \(error)")
    }
    Output.complain("\(name) is saved in \(escaped(file)): the daemon starts it from now on")
  }
}
