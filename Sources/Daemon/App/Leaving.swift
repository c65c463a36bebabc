import Lifecycle

// The daemon goes, its workers stay: for an upgrade, or to move to another configuration directory.

extension Daemon {
  /// Ends the daemon as soon as nothing is under way. Workers that rest frozen sleep on; those that
  /// only a signal or our tracing holds are woken first, because nothing would keep a stranger's
  /// SIGCONT from letting them run without their memory.
  func leave() {
    guard !isLeaving, !isEnding else { return }
    log(.notice, "told to end without its workers")
    isLeaving = true
    leaveWhenAllIsQuiet()
  }

  func leaveWhenAllIsQuiet() {
    guard !hasEnded, adopting.isEmpty else { return }
    var isQuiet = true
    for (id, runtime) in workers {
      guard let state = engine.state(of: id), state.isAlive else { continue }
      let mustWake =
        state.sleeps && runtime.process?.cgroup?.freezer == nil && wokenToLeave[id] != true
      if mustWake { wakeToLeave(id) }
      if mustWake || runtime.isBusy || !state.isSettled { isQuiet = false }
    }
    guard isQuiet else { return }
    let alive = workers.filter { isAlive($0.key) }
    for (id, runtime) in alive {
      if let state = engine.state(of: id) { saveRecord(runtime, state: state) }
    }
    finish(saying: leavingText(alive.compactMap { engine.state(of: $0.key) }))
  }

  /// Once: one that can't be woken by us may be by the next daemon.
  private func wakeToLeave(_ id: WorkerID) {
    guard wokenToLeave[id] == nil else { return }
    wokenToLeave[id] = false
    request(.wake, id) { [unowned self] answer in
      wokenToLeave[id] = true
      if answer.code != .done { log(.error, answer.text) }
    }
  }

  private func leavingText(_ states: [WorkerState]) -> String {
    let asleep = states.count(where: \.sleeps)
    let one = states.count == 1
    var text = "the daemon ends; \(states.count) worker\(one ? " stays" : "s stay")"
    if asleep > 0 {
      text += ", \(asleep) of them asleep until the next daemon, or `dormouse recover`"
    }
    return text
  }
}

extension WorkerState {
  var sleeps: Bool { self == .suspended || self == .hibernated }
  /// Nothing of ours is under way.
  var isSettled: Bool { runs || sleeps }
}
