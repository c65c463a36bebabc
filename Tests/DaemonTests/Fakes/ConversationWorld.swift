import Glibc
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import WorkerProtocol

@testable import Daemon

/// The daemon as a conversation sees it, and a run of a worker whose part the test plays: real sockets, no
/// process.
final class ConversationWorld: ConversationHost {
  let id = WorkerID("web")
  let timers = FakeTimers()
  let watches = FakeWatches()
  private let scratch: Scratch
  private let numbers = MessageNumbers()

  var state: WorkerState? = .background
  var cause = "it was idle"
  var pressure = PressureLevel.normal
  var hasProcess = true
  var hasExited = false
  var isKilled = false
  var isShedding = false
  /// The test's own process plays the worker's.
  var ownsTest = true
  var snapshotProblem: String?

  var events: [Event] = []
  private(set) var logged: [String] = []
  private(set) var channelChanges = 0
  private(set) var readies = 0
  private(set) var reloads = 0
  private(set) var intervals: [Duration] = []
  private(set) var stored: [StoreRequest] = []
  private(set) var snapshots: [WorkerMessage.Snapshot] = []
  private(set) var removedFiles: [String] = []
  private(set) var savedOffers = 0

  init() throws { scratch = try Scratch() }

  /// A run begins, with all channels or some.
  func begin(
    notify: Bool = true, pressure: Bool = true, talk: Bool = true, listens: Bool = true
  ) throws -> WorkerConversation {
    var channels = WorkerChannels()
    if notify { channels.notify = try NotifySocket(path: scratch.uniquePath("notify")) }
    if pressure { channels.pressure = try PressureWatch(path: scratch.uniquePath("pressure")) }
    if talk { channels.talk = try WorkerSocket(path: scratch.uniquePath("worker")) }
    let conversation = WorkerConversation(
      id, channels: channels, timers: timers, watches: watches, numbers: numbers, host: self)
    try conversation.listen()
    if listens { try conversation.listenToConnections() }
    return conversation
  }

  /// The worker connects, and is heard.
  func connect(_ conversation: WorkerConversation) throws -> WorkersEnd {
    guard let path = conversation.workerSocketPath else { throw TestFailure("no worker socket") }
    let worker = try WorkersEnd(path)
    try watches.serve()
    return worker
  }

  /// The worker sends a datagram to its `NOTIFY_SOCKET`.
  func notify(_ text: String, _ conversation: WorkerConversation) throws {
    guard let path = conversation.notifyPath else { throw TestFailure("no notify socket") }
    try UnixSocket.connected(to: path, .datagram).writeAll(text)
  }

  var purgeable: ByteCount? {
    for case .purgeableOffered(_, let bytes) in events.reversed() { return bytes }
    return .zero
  }

  func owns(_ pid: Int32) -> Bool { ownsTest && pid == getpid() }
  func ownsSender(_ pid: Int32) -> Bool { owns(pid) }
  func send(_ event: Event) { events.append(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { logged.append(text) }
  func channelsChanged() { channelChanges += 1 }
  func saidReady() { readies += 1 }
  func saidReloading() { reloads += 1 }
  func saidWatchdogInterval(_ interval: Duration) { intervals.append(interval) }
  func store(_ request: StoreRequest) { stored.append(request) }
  func keep(_ snapshot: WorkerMessage.Snapshot) -> String? {
    snapshots.append(snapshot)
    return snapshotProblem
  }
  func saveOffers() { savedOffers += 1 }
  func removeSocketFile(_ path: String) {
    removedFiles.append(path)
    unlink(path)
  }
}
