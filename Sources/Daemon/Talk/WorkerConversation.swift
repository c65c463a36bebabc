import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

// The worker protocol (docs/worker-protocol.md): what comes in over `DORMOUSE_WORKER_SOCKET`, and how workers
// are asked and told. When they are is in `LifecycleMessages`.

extension Daemon {
  func listen(to talk: WorkerTalk, of runtime: WorkerRuntime) throws(SystemCallError) {
    talk.watch = try loop.watch(talk.socket.descriptor, .readable) {
      [unowned self, unowned talk] _ in serve(talk, of: runtime)
    }
  }

  func closeTalk(_ runtime: WorkerRuntime) {
    guard let talk = runtime.talk else { return }
    if let token = talk.watch { loop.unwatch(talk.socket.descriptor, token) }
    socketFiles.remove(talk.socket.path)
    runtime.talk = nil
  }

  private func serve(_ talk: WorkerTalk, of runtime: WorkerRuntime) {
    guard let process = runtime.process else { return }
    let news: [WorkerSocket.News]
    do throws(SystemCallError) {
      news = try talk.socket.service { process.owns($0) }
    } catch { return log(.warning, "\(runtime.id): \(WorkerProtocol.socketVariable): \(error)") }
    for item in news {
      // What was said before may have been its last word.
      guard runtime.talk === talk else { return }
      hear(item, talk, runtime)
    }
    noteConnections(talk, runtime)
  }

  private func hear(_ news: WorkerSocket.News, _ talk: WorkerTalk, _ runtime: WorkerRuntime) {
    switch news {
    case .connected(let connection): greet(connection, talk, runtime)
    case .said(let connection, let message, let passed):
      hear(message, passed, connection, talk, runtime)
    case .left(let connection, let why):
      talk.hasLeft(connection, byItself: why == nil)
      leftWithOffer(connection, runtime)
      if let why { tellRefusal("a connection is closed: \(why)", talk, runtime) }
    case .refused(let why): tellRefusal("a connection is turned away: \(why)", talk, runtime)
    }
  }

  private func tellRefusal(_ text: String, _ talk: WorkerTalk, _ runtime: WorkerRuntime) {
    if talk.noteRefusal() {
      log(.notice, "\(runtime.id): \(WorkerProtocol.socketVariable): \(text)")
    }
  }

  private func greet(
    _ connection: WorkerTalk.ConnectionID, _ talk: WorkerTalk, _ runtime: WorkerRuntime
  ) {
    let state = engine.state(of: runtime.id) ?? .launching
    _ = talk.socket.send(
      .hello(
        version: WorkerProtocol.version, worker: runtime.id.name, state: state.rawValue,
        pressure: engine.pressure.name), to: connection)
    // The others may not have heard of it yet, when they have only just been woken.
    if talk.socket.connectionIDs.count == 1 { talk.level = engine.pressure }
  }

  private func hear(
    _ message: WorkerMessage, _ passed: Descriptor?, _ connection: WorkerTalk.ConnectionID,
    _ talk: WorkerTalk, _ runtime: WorkerRuntime
  ) {
    switch message {
    case .hello: break
    case .done(let id):
      guard let stray = talk.answered(id, by: connection) else { return }
      if talk.note(stray) { log(.notice, "\(runtime.id): \(stray.sentence(id))") }
      // Too late to be an answer, and yet a sign of life, which `watchdog.answer` waits for. Never
      // while the next request is under way: it would be taken for the answer to that.
      if stray == .late, id == talk.lastShed, runtime.shed == nil {
        driver.send(.shedAnswered(runtime.id))
      }
    case .snapshot(let snapshot):
      if let problem = keep(snapshot, of: runtime) {
        _ = talk.socket.refuse(problem, to: connection)
      }
    case .purgeable: offered(passed, connection, talk, runtime)
    case .ready, .beginTask, .endTask, .hold, .status:
      if let notice = NotifyMessage(message) { handle(notice, from: runtime) }
      if case .endTask(let name) = message { talk.taskHasEnded(NotifyMessage.taskName(name)) }
    }
  }

  /// Whether it can be asked, and is expected to answer, follows its connections.
  func noteConnections(_ talk: WorkerTalk, _ runtime: WorkerRuntime) {
    for connection in talk.socket.takeShutOut() {
      hear(.left(connection, why: "it doesn't read what it is told"), talk, runtime)
    }
    guard runtime.talk === talk, talk.isKnownConnected != talk.socket.isConnected else { return }
    talk.isKnownConnected = talk.socket.isConnected
    tellChannels(of: runtime)
  }

  // MARK: to the worker

  /// Unique in this daemon's life.
  func nextMessageID() -> UInt64 {
    messageCount += 1
    return messageCount
  }

  /// Where it can hear us, and runs: what is said to a sleeper would only wait.
  func talkHeard(by runtime: WorkerRuntime) -> WorkerTalk? {
    guard let talk = runtime.talk, talk.socket.isConnected, !runtime.hasExited else { return nil }
    return talk
  }

  func tell(_ runtime: WorkerRuntime, _ message: (UInt64) -> DaemonMessage) {
    guard let talk = talkHeard(by: runtime) else { return }
    let id = nextMessageID()
    talk.tell(id, message(id))
    noteConnections(talk, runtime)
  }

  /// Asks, and calls `then` exactly once: with true when it has answered, with false when `patience` is
  /// over. False: there is nobody who could be asked, and `then` isn't called.
  func ask(
    _ runtime: WorkerRuntime, _ request: DaemonMessage.Request, within limit: Duration,
    patience: Duration, then: @escaping (Bool) -> Void
  ) -> Bool {
    guard let talk = talkHeard(by: runtime) else { return false }
    let id = nextMessageID()
    var timer: EventLoop.Token?
    let isAsked = talk.ask(request, id: id, within: limit) { [loop] in
      if let timer { loop.cancel(timer) }
      then(true)
    }
    noteConnections(talk, runtime)
    guard isAsked else { return false }
    timer = loop.after(patience) { [weak talk] in
      // A talk that has gone was that of a run that has ended; whoever asked finds that out.
      talk?.close(id)
      then(false)
    }
    return true
  }
}
