import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport

@testable import Daemon

/// A run of a worker and its conversation with the daemon. The test acts as the worker. The sockets
/// are real; time passes and messages are read when the test says so. The test's own process
/// represents the worker's process.
final class ConversationWorld {
  let adapters: AdapterWorld
  let worker: WorkerUnit
  var id: WorkerID { worker.id }
  var timers: FakeLoop { adapters.timers }
  var watches: FakeLoop { adapters.watches }

  /// - Parameter state: the worker's state in the engine; `.launching`: the engine has been asked
  ///   to start the worker.
  init(
    _ state: WorkerState = .background, _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws {
    adapters = try AdapterWorld()
    worker = try adapters.add("web", state == .launching ? .terminated : state) {
      $0.policy.background.safePoint.fileLocks = .zero
      change(&$0)
    }
    if state == .launching {
      worker.process = try .forTest()
      adapters.driver.request(.start, worker.id) { _ in }
    }
    forget()
  }

  deinit { worker.conversation?.end() }

  // MARK: run

  /// Creates the worker's channels, all or some of them.
  func begin(
    notify: Bool = true, pressure: Bool = true, talk: Bool = true, listens: Bool = true,
    acceptsDescriptors: Bool = false
  ) throws -> WorkerConversation {
    let scratch = adapters.scratch
    do {
      var channels = WorkerChannels()
      if notify {
        channels.notify = try NotifySocket(
          path: scratch.uniquePath("notify"), acceptsDescriptors: acceptsDescriptors)
      }
      if pressure { channels.pressure = try PressureWatch(path: scratch.uniquePath("pressure")) }
      if talk { channels.talk = try WorkerSocket(path: scratch.uniquePath("worker")) }
      adapters.conversations.makeConversation(worker, over: channels)
    }
    guard let conversation = worker.conversation else { throw TestFailure("no conversation") }
    try conversation.listen()
    if listens { try conversation.listenToConnections() }
    return conversation
  }

  /// Connects the worker to its socket. The daemon accepts the connection.
  func connect(_ conversation: WorkerConversation) throws -> WorkerSocketPeer {
    guard let path = conversation.workerSocketPath else { throw TestFailure("no worker socket") }
    let worker = try WorkerSocketPeer(path)
    try watches.serve()
    return worker
  }

  /// Sends a datagram to the worker's `NOTIFY_SOCKET`.
  func notify(_ text: String, _ conversation: WorkerConversation) throws {
    guard let path = conversation.notifyPath else { throw TestFailure("no notify socket") }
    try UnixSocket.connected(to: path, .datagram).writeAll(text)
  }

  // MARK: engine

  /// Lets the engine begin to suspend the worker.
  func suspend() throws {
    adapters.driver.request(.suspend, id) { _ in }
    guard adapters.driver.state.state(of: id) == .suspending else {
      throw TestFailure("it isn't being suspended")
    }
    forget()
  }

  var pressure: PressureLevel {
    get { adapters.driver.state.pressure }
    set { adapters.driver.send(.pressureSet(newValue, for: .seconds(3600))) }
  }

  /// The events about the worker that the engine has got since `forget`.
  var events: [Event] {
    adapters.notes.all.filter {
      switch $0 {
      case .channelsChanged, .pressureSet, .request: false
      default: true
      }
    }
  }

  var channelChanges: Int {
    adapters.notes.all.count { if case .channelsChanged = $0 { true } else { false } }
  }

  func forget() { adapters.notes.forget() }

  // MARK: results

  var logged: [String] { adapters.logFile.lines(about: id.name) }

  /// The worker's record on the disk.
  func recorded() throws -> WorkerRecord {
    adapters.services.records.drain()
    return try adapters.services.records.store.load(id.name)
  }
}
