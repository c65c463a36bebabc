import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// Workers that slept when their daemon went, and may go on: waking a hundred of them at once because
// a daemon has been replaced would need the very memory that they were put to sleep for.

extension Daemon {
  /// Leaves a sleeping worker asleep and watches its inputs, if it rests just as its record says.
  /// False: it must be recovered, which wakes it.
  func adoptAsleep(
    _ record: WorkerRecord, _ runtime: WorkerRuntime, _ target: HibernationTarget
  ) -> Bool {
    let path = state.image(of: record.name)
    let asleep: WorkerState
    switch record.state {
    case WorkerState.hibernated.rawValue:
      guard Hibernator.isAtRest(target, on: path, expecting: .of(record)) else { return false }
      asleep = .hibernated
    case WorkerState.suspended.rawValue:
      // A hibernation may have begun and not come to its record.
      let partial = path + ".partial"
      guard access(path, F_OK) != 0, access(partial, F_OK) != 0,
        Hibernator.isAtRest(target, on: nil)
      else { return false }
      asleep = .suspended
    default: return false
    }
    let image = ImageOnDisk(
      path: path, mark: record.imageMark.flatMap(ImageMark.init(text:)),
      length: Hibernator.lengthOnDisk(of: path))
    // What brings it back is what a new daemon does: it verifies before it writes.
    runtime.sleep?.adopt(asleepWith: asleep == .hibernated ? image : nil)
    conversations.findOffersAgain(record, runtime)
    adopting[runtime.id] = []
    let alarm = record.alarm.map { Instant(nanoseconds: $0) }
    watchSleeper(runtime, target, asleep, alarm: alarm)
    return true
  }

  private func watchSleeper(
    _ runtime: WorkerRuntime, _ target: HibernationTarget, _ asleep: WorkerState,
    alarm: Instant?
  ) {
    let id = runtime.id
    let ownChannels = runtime.ownChannels
    let answered = runtime.answeredPorts
    runtime.sleep?.perform { then in
      let done = loopReturn.callback(then)
      mechanics.submit(about: id.name) {
        done(
          Result { () throws(SystemCallError) in
            let tree = try ProcessTree.discover(
              root: target.root, session: target.session, cgroup: target.cgroup)
            return try WakeSources(of: tree, ownChannels: ownChannels, answering: answered)
          })
      }
    } then: { [unowned self] (sources: Result<WakeSources, SystemCallError>) in
      sleepsOn(id, asleep, sources, alarm: alarm)
      adoptionIsOver(id)
    }
  }

  private func sleepsOn(
    _ id: WorkerID, _ asleep: WorkerState, _ sources: Result<WakeSources, SystemCallError>,
    alarm: Instant?
  ) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    listen(for: runtime, at: sources)
    if let alarm { setAlarm(for: runtime, at: alarm, "a time of its own, set before") }
    log(.notice, "\(id): adopted, \(asleep.rawValue) as it was, pid \(process.identity.pid)")
    driver.send(.adopted(id, runtime.profile, asleep))
    runtime.conversation?.offers.recount()
    saveRecord(runtime, state: asleep)
    if let why = unheard(runtime, sources) { driver.send(.wakeNeeded(id, why)) }
    wakeForWhatWaits(runtime)
  }

  /// Why it can't sleep on: nothing but its inputs would wake it, and they can't be watched.
  private func unheard(
    _ runtime: WorkerRuntime, _ sources: Result<WakeSources, SystemCallError>
  ) -> String? {
    let isUnheard =
      runtime.configuration.policy.foreground.mode == .activity || Yama.current.forbidsStrangers
    guard isUnheard, let refusal = sources.refusal else { return nil }
    return "its sockets can't be watched while it sleeps (\(refusal))"
  }
}

extension ImageExpectation {
  /// Of a worker whose memory is in an image.
  static func of(_ mark: ImageMark?) -> ImageExpectation { mark.map { .image($0) } ?? .hibernated }

  /// As a worker's record has it. Only a worker that is recorded as hibernated is certain to have its
  /// memory in an image: a resume is recorded before it begins.
  static func of(_ record: WorkerRecord) -> ImageExpectation {
    guard record.state == WorkerState.hibernated.rawValue else { return .unknown }
    return .of(record.imageMark.flatMap(ImageMark.init(text:)))
  }
}
