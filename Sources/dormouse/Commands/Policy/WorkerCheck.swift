import Control
import Linux
import PolicyFile

/// The users, directories and programs that a configuration's workers need and this machine lacks.
/// Each is a warning: the configuration may be for another machine.
struct WorkerCheck {
  let configuration: DaemonConfiguration
  /// The caller's PATH. The daemon's may be another.
  let searchPath: String?

  var warnings: [Diagnostic] { configuration.workers.flatMap(warnings) }

  private func warnings(of worker: WorkerConfiguration) -> [Diagnostic] {
    var problems: [Diagnostic] = []
    if worker.user != nil || worker.group != nil {
      do throws(AccountError) { _ = try Account(user: worker.user, group: worker.group) } catch {
        problems.append(warning(worker, key: worker.user == nil ? "group" : "user", "\(error)"))
      }
    }
    let status = fileStatus(of: worker.directory)
    guard let status, status.isDirectory else {
      let what = status == nil ? "doesn't exist" : "is not a directory"
      // A relative program is searched in the directory, so it isn't checked.
      return problems + [
        warning(worker, key: "directory", "the directory \(worker.directory) \(what)")
      ]
    }
    do throws(CommandLookupError) {
      _ = try locateCommand(
        worker.command.first ?? "", searchPath: worker.environment["PATH"] ?? searchPath,
        directory: worker.directory)
    } catch {
      // Another user may be permitted to execute a file that the caller isn't.
      if case .notExecutable = error, worker.user != nil { return problems }
      problems.append(warning(worker, key: "command", "\(error)"))
    }
    return problems
  }

  private func warning(_ worker: WorkerConfiguration, key: String, _ what: String) -> Diagnostic {
    let origins = configuration.origins
    let keyOrigin = origins.origin(ofWorker: worker.name, key: key)
    let origin = keyOrigin.position == nil ? origins.origin(ofWorker: worker.name) : keyOrigin
    return Diagnostic(
      severity: .warning, file: origin.file ?? "", position: origin.position,
      message: "`\(worker.name)` can't start on this machine: \(what)")
  }
}
