import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

// The outcome of a suspension, hibernation or resume is overdue: the engine asks what the worker's state
// really is (`Directive.inspect`). What rests is recognised, as a new daemon does; where anything is in
// doubt, recovery proves the worker's memory and lets it run.

extension Daemon {
  func inspect(_ id: WorkerID) {
    guard let runtime = workers[id], runtime.process != nil else {
      return driver.send(.exited(id, .unknown))
    }
    // Its end is under way, and answers everything.
    if runtime.hasExited { return rootHasEnded(runtime) }
    guard !runtime.isBusy, let target = runtime.target() else {
      return driver.send(.found(id, .underWay))
    }
    log(.warning, "\(id): the outcome of an operation was lost: its state is inspected")
    // What has not begun by now (its worker is still being told) does not begin any more.
    _ = runtime.operations.begin()
    runtime.isBusy = true
    let path = state.image(of: id.name)
    mechanics.submit(about: id.name) { [mailbox] in
      let rest = Self.rest(of: target, image: path)
      mailbox.post { daemon in
        daemon.isDone(runtime: id) { daemon.inspected(id, rest, target, image: path) }
      }
    }
  }

  /// As it rests, if it does; `nil`: anything is in doubt.
  private static func rest(of target: HibernationTarget, image path: String) -> WorkerState? {
    if Hibernator.isAtRest(target, on: path) { return .hibernated }
    guard access(path, F_OK) != 0, access(path + ".partial", F_OK) != 0 else { return nil }
    return Hibernator.isAtRest(target, on: nil) ? .suspended : nil
  }

  private func inspected(
    _ id: WorkerID, _ rest: WorkerState?, _ target: HibernationTarget, image path: String
  ) {
    guard let runtime = workers[id], !runtime.hasExited else { return }
    switch rest {
    case .hibernated?:
      runtime.rest = runtime.rest.recovering(from: path)
      driver.send(.found(id, .hibernated))
    case .suspended?:
      runtime.rest.hasNoImage()
      driver.send(.found(id, .suspended))
    default:
      runtime.isBusy = true
      hibernation.recover(target, from: path) { [mailbox] result in
        let isThere = access(path, F_OK) == 0
        mailbox.post { daemon in
          daemon.isDone(runtime: id) {
            daemon.recoveredAfterInspection(id, result, image: isThere ? path : nil)
          }
        }
      }
    }
  }

  private func recoveredAfterInspection(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, image path: String?
  ) {
    guard let runtime = workers[id], !runtime.hasExited else { return }
    switch result {
    case .success:
      runtime.rest = .thaw(mayBeStopped: true)
      stopListening(for: runtime)
      tellAwake(runtime)
      driver.send(.found(id, .running))
    case .failure(let error) where error.aftermath == .intact:
      log(.error, "\(id): it can't be woken yet: \(error)")
      runtime.rest =
        path.map(runtime.rest.recovering)
        ?? .recover(path: state.image(of: id.name), expecting: .unknown)
      driver.send(.found(id, path == nil ? .suspended : .hibernated))
    case .failure(let error):
      killUnverified(id)
      driver.send(.found(id, .unverifiable(error.description)))
    }
  }
}
