import Lifecycle
import Linux
import Policy

// What doesn't find its port, its file or its module ends within the first moments of its run, and to
// whoever started it "is running" would be no answer. A worker that says when it is ready has told by
// then. Any other is watched until it has come to rest: nothing of it wants a processor or waits for a
// disk, as a server that waits for its first client. What goes on working counts as running after a
// second; what has hardly got a processor in that time, after five.

private enum FirstMoments {
  static let least = Duration.milliseconds(100)
  static let most = Duration.seconds(1)
  /// On a busy machine.
  static let maxStarved = Duration.seconds(5)
  /// Clock ticks of processor time, below which a worker has hardly begun.
  static let ticksToBegin: UInt64 = 10
  static let look = Duration.milliseconds(25)
}

extension Daemon {
  /// Passes on the answer to a start: at once, or when it is known whether the worker stays.
  func watchFirstMoments(
    of id: WorkerID, _ answer: Answer, then respond: @escaping (Answer) -> Void
  ) {
    guard let runtime = workers[id] else { return respond(answer) }
    if answer.code == .failed {
      return respond(Answer(.failed, answer.text + restarts.lastWords(of: id)))
    }
    guard answer.code == .done, runtime.configuration.readiness == nil,
      isAlive(id), EventLoop.now - restarts.launchedAt(of: id) < FirstMoments.maxStarved
    else { return respond(answer) }
    let isFirst = restarts.watch(id) { end in respond(end ?? answer) }
    if isFirst { look(at: runtime, restingSince: nil) }
  }

  /// - Parameter restingSince: the processor time that it had used when it rested at the last look.
  private func look(at runtime: WorkerRuntime, restingSince before: UInt64?) {
    // One of the same name may have been started since.
    guard workers[runtime.id] === runtime, restarts.isWatched(runtime.id) else { return }
    // One that has ended is only waited for: its end is told in a moment.
    if runtime.hasExited { return lookAgain(at: runtime, restingSince: nil) }
    guard let process = runtime.process else { return restarts.stays(runtime.id) }
    senses.scanner.withTree(of: process) { [unowned self] tree in
      guard workers[runtime.id] === runtime else { return }
      let ran = EventLoop.now - restarts.launchedAt(of: runtime.id)
      let isAwake = engine.state(of: runtime.id)?.runs == true
      let used = tree?.timeUsedAtRest
      let rests = ran >= FirstMoments.least && used != nil && used == before
      // A tree that can't be read has ended meanwhile.
      let hasBegun = used != nil || (tree?.timeUsed ?? .max) >= FirstMoments.ticksToBegin
      let most = hasBegun ? FirstMoments.most : FirstMoments.maxStarved
      if !runtime.hasExited, !isAwake || rests || ran >= most { return restarts.stays(runtime.id) }
      lookAgain(at: runtime, restingSince: used)
    }
  }

  private func lookAgain(at runtime: WorkerRuntime, restingSince used: UInt64?) {
    loop.after(FirstMoments.look) { [unowned self] in
      look(at: runtime, restingSince: used)
    }
  }
}

extension ProcessTree {
  /// In clock ticks; `nil` where something of it runs, or waits for a processor or a disk.
  fileprivate var timeUsedAtRest: UInt64? {
    guard !isEmpty, processes.allSatisfy({ $0.state == .sleeping }) else { return nil }
    return timeUsed
  }

  /// In clock ticks.
  fileprivate var timeUsed: UInt64 { processes.reduce(0) { $0 &+ $1.cpuTicks } }
}
