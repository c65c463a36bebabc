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
      return respond(Answer(.failed, answer.text + lastWords(of: runtime)))
    }
    guard answer.code == .done, runtime.configuration.readiness == nil,
      isAlive(id), EventLoop.now - runtime.runs.launchedAt < FirstMoments.maxStarved
    else { return respond(answer) }
    let isWatched = !runtime.runs.watchers.isEmpty
    runtime.runs.watchers.append { end in respond(end ?? answer) }
    if !isWatched { look(at: runtime, restingSince: nil) }
  }

  /// - Parameter restingSince: the processor time that it had used when it rested at the last look.
  private func look(at runtime: WorkerRuntime, restingSince before: UInt64?) {
    guard !runtime.runs.watchers.isEmpty else { return }
    // One that has ended is only waited for: its end is told in a moment.
    if runtime.hasExited { return lookAgain(at: runtime, restingSince: nil) }
    guard let process = runtime.process else { return release(runtime, nil) }
    withTree(of: process) { [unowned self] tree in
      let ran = EventLoop.now - runtime.runs.launchedAt
      let isAwake = engine.state(of: runtime.id)?.runs == true
      let used = tree?.timeUsedAtRest
      let rests = ran >= FirstMoments.least && used != nil && used == before
      // A tree that can't be read has ended meanwhile.
      let hasBegun = used != nil || (tree?.timeUsed ?? .max) >= FirstMoments.ticksToBegin
      let most = hasBegun ? FirstMoments.most : FirstMoments.maxStarved
      if !runtime.hasExited, !isAwake || rests || ran >= most { return release(runtime, nil) }
      lookAgain(at: runtime, restingSince: used)
    }
  }

  private func lookAgain(at runtime: WorkerRuntime, restingSince used: UInt64?) {
    loop.after(FirstMoments.look) { [unowned self] in
      look(at: runtime, restingSince: used)
    }
  }

  /// - Parameter end: what has become of it; `nil`: it stays.
  private func release(_ runtime: WorkerRuntime, _ end: Answer?) {
    let watchers = runtime.runs.watchers
    runtime.runs.watchers = []
    for watcher in watchers { watcher(end) }
  }

  /// It has ended within its first moments.
  func tellWatchers(of runtime: WorkerRuntime, _ cause: Cause) {
    guard !runtime.runs.watchers.isEmpty else { return }
    let ran = (EventLoop.now - runtime.runs.launchedAt).spoken
    if cause == .exited(.exited(0)), runtime.runs.leftBehind == 0 {
      return release(
        runtime, Answer(.done, "\(runtime.id) has ended already, with status 0, after \(ran)"))
    }
    var text = "\(runtime.id) ended \(ran) after its launch: \(cause.sentence)"
    if runtime.runs.leftBehind > 0 {
      text +=
        ", and left processes behind, which were ended with it; if it puts itself into the "
        + "background, start it with its option against that"
    }
    if let due = runtime.runs.due {
      text += "; it is started again in \((due.at - EventLoop.now).spoken)"
    }
    release(runtime, Answer(.failed, text + lastWords(of: runtime)))
  }

  /// What a failed start is followed by.
  func lastWords(of runtime: WorkerRuntime) -> String {
    guard engine.state(of: runtime.id) == .terminated,
      let words = runtime.runs.exits.last?.lastWords
    else { return "" }
    return ". Its last words: \(words) (`dormouse logs \(runtime.id)` has the others)"
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
