import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

/// All that one run of a worker and the daemon send each other: over `DORMOUSE_WORKER_SOCKET`
/// (docs/worker-protocol.md), over `NOTIFY_SOCKET`, and over `MEMORY_PRESSURE_WATCH`. It owns the
/// daemon's ends of these three channels and receives their messages on the event loop.
/// LifecycleMessages.swift has the messages about the worker's life cycle. `offers` has the memory
/// that may be purged.
///
/// There is one for each run of a worker; `end()` closes all channels. It belongs to the event
/// loop's thread.
final class WorkerConversation {
  let handle: WorkerHandle
  let conversations: WorkerConversations

  private(set) var notifications: NotificationChannel?
  private(set) var pressure: PressureChannel?
  private(set) var talk: WorkerTalk?
  private var talkWatch: EventLoop.Token?

  /// Whether the worker is connected, as the engine was last informed.
  private var isReportedConnected = false
  /// The last pressure level that all connections have received; nil if there was none.
  private var sentLevel: PressureLevel?
  /// The number of the last request for memory.
  private var lastShed: UInt64?
  private(set) var isOver = false

  /// The status that the worker reported last.
  var statusText: String?
  /// Whether the worker has reported by itself that it freed memory (`X_DORMOUSE_DONE=1`). From
  /// then on an answer is expected.
  var answersItself = false
  let offers: PurgeableOffers

  init(
    _ handle: WorkerHandle, over channels: WorkerChannels, _ conversations: WorkerConversations
  ) {
    self.handle = handle
    self.conversations = conversations
    let (timers, watches) = (conversations.timers, conversations.watches)
    notifications = channels.notify.map {
      NotificationChannel(
        $0, timers: timers, watches: watches,
        isSender: { handle.worker?.process?.ownsSender($0) == true },
        log: { handle.log($0, $1) })
    }
    pressure = channels.pressure.map { PressureChannel($0, watches) }
    talk = channels.talk.map { WorkerTalk($0, timers: timers) }
    offers = PurgeableOffers(
      of: handle, timers: timers, jobs: conversations.services.jobs,
      recordWriter: conversations.recordWriter)
  }

  deinit { unwatch() }

  // MARK: sockets

  /// The paths of the worker's sockets; nil for a channel that the worker doesn't have.
  var notifyPath: String? { notifications?.path }
  var pressurePath: String? { pressure?.path }
  var workerSocketPath: String? { talk?.socket.path }

  var paths: Set<String> {
    Set([notifyPath, pressurePath, workerSocketPath].compactMap(\.self))
  }

  /// Receives messages from now on, except those over `DORMOUSE_WORKER_SOCKET`.
  func listen() throws(SystemCallError) {
    try notifications?.listen { [weak self] in self?.receiveNotifications() }
    try pressure?.listen { [weak self] in
      self?.handle.sendChannels()
    } failed: { [weak self] in
      self?.handle.log(.warning, "MEMORY_PRESSURE_WATCH: \($0)")
    }
  }

  func listenToConnections() throws(SystemCallError) {
    guard let talk, talkWatch == nil else { return }
    talkWatch = try conversations.watches.whenReadable(talk.socket.descriptor) { [weak self] in
      self?.serveConnections()
    }
  }

  /// Closes the sockets and calls back each open question, because the run has ended.
  func end() {
    guard !isOver else { return }
    isOver = true
    unwatch()
    for path in paths.sorted() { conversations.services.socketFiles.remove(path) }
    notifications = nil
    pressure = nil
    // What is called back may not ask the worker again.
    let talk = talk
    self.talk = nil
    offers.end()
    talk?.end()
  }

  private func unwatch() {
    notifications?.end()
    pressure?.end()
    if let talk, let talkWatch { conversations.watches.unwatch(talk.socket.descriptor, talkWatch) }
    talkWatch = nil
  }

  // MARK: state

  /// The engine's pressure level, now.
  private var level: PressureLevel { handle.driver.state.pressure }
  private var isConnected: Bool { talk?.socket.isConnected ?? false }
  /// Whether the worker has opened a channel on which it can be asked for memory.
  var canShed: Bool { pressure?.hasListened == true || isConnected }
  /// Whether the worker is expected to answer a request for memory.
  var canAnswer: Bool { answersItself || isConnected }

  // MARK: NOTIFY_SOCKET

  /// Receives a few messages at a time, so that a busy sender leaves time for other workers.
  func receiveNotifications(limit: Int = 8) {
    guard let notifications, handle.worker?.process != nil else { return }
    let (messages, requests) = notifications.receive(limit: limit)
    for request in requests { store(request) }
    for message in messages where !isOver { apply(message) }
  }

  /// The time of the worker's last sign of life, for the engine's watchdog. Its messages may still
  /// be in the socket, because this daemon may be late too.
  func lastSign() -> Instant? {
    receiveNotifications(limit: 64)
    return notifications?.lastSign()
  }

  // MARK: DORMOUSE_WORKER_SOCKET, from the worker

  private func serveConnections() {
    guard let talk, let process = handle.worker?.process else { return }
    let updates: [WorkerSocket.Update]
    do throws(SystemCallError) {
      updates = try talk.socket.service(isMember: process.owns)
    } catch { return handle.log(.warning, "\(WorkerProtocol.socketVariable): \(error)") }
    for update in updates {
      // The message before this one may have ended the run.
      guard !isOver else { return }
      didReceive(update, talk)
    }
    checkConnections(talk)
  }

  private func didReceive(_ update: WorkerSocket.Update, _ talk: WorkerTalk) {
    switch update {
    case .connected(let connection): greet(connection, talk)
    case .received(let connection, let message, let passed):
      didReceive(message, passed: passed, from: connection, over: talk)
    case .closed(let connection, let reason):
      talk.didDisconnect(connection, byItself: reason == nil)
      offers.didDisconnect(connection)
      if let reason { logRefusal("closed a connection: \(reason)", talk) }
    case .refused(let reason): logRefusal("refused a connection: \(reason)", talk)
    }
  }

  private func logRefusal(_ text: String, _ talk: WorkerTalk) {
    if talk.countRefusal() { handle.log(.notice, "\(WorkerProtocol.socketVariable): \(text)") }
  }

  private func greet(_ connection: WorkerTalk.ConnectionID, _ talk: WorkerTalk) {
    _ = talk.socket.send(
      .hello(
        version: WorkerProtocol.version, worker: handle.id.name,
        state: (handle.state ?? .launching).rawValue, pressure: level.name),
      to: connection)
    // A worker that was just woken may have connections that haven't received the level yet.
    if talk.socket.connectionIDs.count == 1 { sentLevel = level }
  }

  private func didReceive(
    _ message: WorkerMessage, passed: Descriptor?, from connection: WorkerTalk.ConnectionID,
    over talk: WorkerTalk
  ) {
    switch message {
    case .hello: break
    case .done(let number): didAnswer(number, from: connection, over: talk)
    case .snapshot(let snapshot):
      if let problem = keep(snapshot) { _ = talk.socket.refuse(problem, to: connection) }
    case .purgeable:
      // Without a descriptor the connection has just ended.
      guard let descriptor = talk.socket.descriptor(of: connection) else { return }
      if let problem = offers.add(passed, from: connection, over: descriptor) {
        _ = talk.socket.refuse(problem, to: connection)
      }
    case .ready, .beginTask, .endTask, .hold, .status:
      if let notice = NotifyMessage(message) { apply(notice) }
      if case .endTask(let name) = message { talk.didEndTask(WorkerProtocol.shown(name)) }
    }
  }

  private func didAnswer(
    _ number: UInt64, from connection: WorkerTalk.ConnectionID, over talk: WorkerTalk
  ) {
    guard let stray = talk.answered(number, by: connection) else { return }
    if talk.count(stray) { handle.log(.notice, stray.sentence(number)) }
    // A late answer is still a sign of life, which `watchdog.answer` waits for. While the next
    // request is under way it isn't reported: it would count as the answer to that one.
    if stray == .late, number == lastShed, handle.worker?.shed == nil {
      handle.send(.shedAnswered(handle.id))
    }
  }

  /// Reports the worker's channels to the engine if its connections began or ended.
  private func checkConnections(_ talk: WorkerTalk) {
    for connection in talk.socket.drainClosed() {
      didReceive(.closed(connection, reason: "it does not read its messages"), talk)
    }
    guard !isOver, isReportedConnected != talk.socket.isConnected else { return }
    isReportedConnected = talk.socket.isConnected
    handle.sendChannels()
  }

  // MARK: DORMOUSE_WORKER_SOCKET, to the worker

  /// The worker's connections, if it can receive messages. Messages to a sleeping worker only wait.
  private var listeningTalk: WorkerTalk? {
    guard let talk, talk.socket.isConnected, handle.worker?.hasExited == false else { return nil }
    return talk
  }

  /// Sends a message that needs no answer.
  func send(_ message: (_ number: UInt64) -> DaemonMessage) {
    guard let talk = listeningTalk else { return }
    let number = conversations.nextNumber()
    talk.post(number, message(number))
    checkConnections(talk)
  }

  /// Sends a running worker the pressure level. A sleeping worker gets the level when it is woken.
  func sendPressure() {
    guard let talk = listeningTalk else { return }
    talk.post(.pressure(level: level.name))
    sentLevel = level
    checkConnections(talk)
  }

  /// Sends the pressure level after a sleep, if it has changed.
  func sendPressureIfChanged() {
    if let sentLevel, sentLevel != level { sendPressure() }
  }

  /// Asks every connection, and calls `then` with the outcome: once, or never after `talk.close`.
  ///
  /// - Parameters:
  ///   - limit: the deadline that the question names.
  ///   - timeout: how long to wait for the answer; nil: until `talk.close`.
  /// - Returns: the question's number; nil, without a call of `then`, if there is no connection.
  func ask(
    _ request: DaemonMessage.Request, within limit: Duration, timeout: Duration?,
    then: @escaping (ConversationReply) -> Void
  ) -> UInt64? {
    guard let talk = listeningTalk else { return nil }
    let number = conversations.nextNumber()
    let isAsked = talk.ask(request, id: number, within: limit, timeout: timeout, then: then)
    checkConnections(talk)
    return isAsked ? number : nil
  }

  /// Asks the worker for memory, for the engine. The question has no limit: it is open until
  /// `talk.close`.
  func askForMemory(
    _ request: DaemonMessage.Request, within limit: Duration,
    then: @escaping (ConversationReply) -> Void
  ) -> UInt64? {
    let number = ask(request, within: limit, timeout: nil, then: then)
    if let number { lastShed = number }
    return number
  }
}
