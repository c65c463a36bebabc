import CLinux
import Glibc
import Linux

/// The sockets and pipes of a sleeping worker, watched in its place: no process stands between it and its
/// clients, and nothing is read.
///
///     worker (frozen)              daemon
///     listener ───────┐  ADD       ┌ epoll of this worker ──▶ event loop ──▶ wakeNeeded
///     connections ────┼───────────▶│  (holds no reference)
///     stdin, pipes ───┘            └
///
/// Each is duplicated (pidfd_getfd(2)), put into one epoll set, and the duplicate is closed again.
/// An epoll set still watches what it was given as long as *any* process has it open (epoll(7), Q6), and holds
/// none of it open itself. So a worker's connections close when it closes them or dies, sleeping costs one
/// descriptor whatever the number of connections, and closing the set ends all watches.
///
/// Edge-triggered: a descriptor reports what comes, not what is there. What is there already is
/// sorted out once, when the set is made; see `sortOut`.
public final class WakeSources: Sendable {
  /// Readable when `nextReason` has one.
  public let descriptor: Descriptor
  /// What had come by the time the worker slept, and it hadn't got round to; it should be woken at
  /// once.
  public let waiting: String?
  /// All of that, for the next time that it falls asleep.
  public let leftUnread: LeftUnread
  /// What can't be watched; the worker could sleep through a call there.
  public let refusals: [SystemCallError]
  /// Not watched here: the daemon answers there.
  public let answered: [AsleepListener]
  /// What it waits for and nothing here can see, as clauses: `the release of a file lock`.
  public let unwatched: [String]
  private let names: [InputName]
  private let served: Set<UInt16>
  /// By index: FIFOs that it waits to open.
  private let openings: [Int: AwaitedOpening]

  public var count: Int { names.count }
  /// Something else than the worker itself can give it work: a client at a listener, at a datagram
  /// socket, at its standard input.
  public var hasClients: Bool { !answered.isEmpty || names.contains(where: \.isForClients) }

  /// See `init`: of a worker that may be in the middle of other work.
  public static let recently = Duration.seconds(2)

  /// Of a worker that is frozen or stopped. Needs the right to trace it.
  ///
  /// `ignored`: what it leaves unread by choice; `answering`: ports whose listeners another part of the daemon
  /// watches; `openFor`: a request that came longer ago and isn't answered is one that the worker waits with.
  public init(
    of tree: ProcessTree, ownChannels: Set<String>, ignored: LeftUnread = LeftUnread(),
    answering ports: Set<UInt16> = [], openFor limit: Duration = recently
  ) throws(SystemCallError) {
    let set = Descriptor(owning: try shim("epoll_create1") { clinux_epoll_create() })
    var register = Register(set: set, ignored: ignored)
    let inputs = WorkerInputs(of: tree, ownChannels: ownChannels)
    var answered: [AsleepListener] = []
    refusals = try inputs.forEach { input throws(SystemCallError) in
      if let listener = AsleepListener(input, answered: ports) {
        answered.append(listener)
      } else {
        try register.add(input)
      }
    }
    self.answered = answered
    unwatched = try register.addWaits(of: tree)
    openings = register.openings
    descriptor = set
    names = register.names
    leftUnread = register.leftUnread
    served = Set(names.compactMap(\.listeningPort)).union(answered.map(\.port))
    waiting = register.sortOut(served: served, openFor: limit)
  }

  /// The worker is about to run, or runs: what was opened in its place is handed over to it.
  public func admitOpened() {
    for opening in openings.values where opening.isOpened { opening.admit() }
  }

  /// What has come since the last time; nil: nothing.
  public func nextReason() -> String? {
    var found: String?
    for event in Self.drain(descriptor) {
      let index = Int(truncatingIfNeeded: event.data)
      guard found == nil, names.indices.contains(index) else { continue }
      // Its writer may have thought better of it, or it was another process's look at the FIFO.
      if let opening = openings[index], !opening.isOpened { continue }
      found = Self.sentence(names[index], events: event.events, served: served)
    }
    return found
  }

  fileprivate static func sentence(
    _ name: InputName, events: UInt32, served: Set<UInt16>
  ) -> String {
    let hangUps = UInt32(CLINUX_EPOLLHUP | CLINUX_EPOLLRDHUP | CLINUX_EPOLLERR)
    if events & (hangUps | UInt32(CLINUX_EPOLLIN)) == 0, events & UInt32(CLINUX_EPOLLOUT) != 0 {
      return name.sentenceOfRoom(served: served)
    }
    return name.sentence(isHangUp: events & hangUps != 0, served: served)
  }

  /// All events that are due; an edge is reported once.
  fileprivate static func drain(_ set: Descriptor) -> [clinux_event] {
    var all: [clinux_event] = []
    while true {
      var events = [clinux_event](repeating: clinux_event(), count: 64)
      let count = clinux_epoll_wait(set.raw, &events, 64, 0)
      if count <= 0 { return all }
      all += events.prefix(Int(count))
    }
  }
}

/// Fills a set, and finds out what has been missed.
private struct Register {
  let set: Descriptor
  let ignored: LeftUnread
  var names: [InputName] = []
  var leftUnread = LeftUnread()
  /// By index: what was unread before the freeze, and the means to look again.
  private var doubtful: [Int: (input: WorkerInput, before: UnreadInput)] = [:]
  private var traffic: [Int: SocketFacts.Traffic] = [:]
  private(set) var openings: [Int: AwaitedOpening] = [:]

  init(set: Descriptor, ignored: LeftUnread) {
    self.set = set
    self.ignored = ignored
  }

  mutating func add(_ input: WorkerInput) throws(SystemCallError) {
    let index = names.count
    var interest = UInt32(CLINUX_EPOLLIN | CLINUX_EPOLLRDHUP) | Self.edgeTriggered
    // It may have more to send than there is room for: its client waits for the rest.
    if let facts = input.facts, facts.isStream, !facts.isListening, !input.duplicate.isWritable {
      interest |= UInt32(CLINUX_EPOLLOUT)
    }
    do throws(SystemCallError) {
      try shim("epoll_ctl", on: "descriptor \(input.open.number) of \(input.pid)") {
        clinux_epoll_add(set.raw, input.duplicate.raw, interest, UInt64(index))
      }
    } catch {
      switch (error.code, input.open.kind) {
      // Another process's descriptor of the same file is in the set already.
      case (EEXIST, _): return
      // A device that has nothing to wait for.
      case (EPERM, .device): return
      default: throw error
      }
    }
    names.append(InputName(input))
    if let unread = UnreadInput(input) { leftUnread.unread[input.key] = unread }
    if let before = ignored.unread[input.key] { doubtful[index] = (input, before) }
    // What is unread isn't being answered.
    if let facts = input.facts, facts.unread == 0 { traffic[index] = facts.traffic }
  }

  /// Calls in which the worker waits for another process, without a descriptor. Returns what can't be
  /// watched of that.
  mutating func addWaits(of tree: ProcessTree) throws(SystemCallError) -> [String] {
    var missed: [String] = []
    for wait in OutsideWait.all(of: tree) {
      let isWatched: Bool
      switch wait.reason {
      case .opening(_, let path, _): isWatched = try add(opening: wait, path)
      case .messageQueue(let number): isWatched = add(queue: number, of: wait.pid)
      default: isWatched = false
      }
      if !isWatched { missed.append(wait.missed) }
    }
    return missed.reduce(into: []) { all, each in if !all.contains(each) { all.append(each) } }
  }

  private mutating func add(
    opening wait: OutsideWait, _ path: String
  ) throws(SystemCallError) -> Bool {
    guard let opening = AwaitedOpening(wait) else { return false }
    let index = names.count
    for descriptor in [opening.held, opening.opens] {
      try shim("epoll_ctl", on: path) {
        clinux_epoll_add(
          set.raw, descriptor.raw, UInt32(CLINUX_EPOLLIN) | Self.edgeTriggered, UInt64(index))
      }
    }
    names.append(.opening(path: path))
    openings[index] = opening
    return true
  }

  private mutating func add(queue number: Int32, of pid: Int32) -> Bool {
    // Refused, it is named as unwatched.
    guard let pidfd = try? Descriptor.pidfd(of: pid) else { return false }
    let queue = Descriptor(foreign: clinux_pidfd_getfd(pidfd.raw, number))
    let result = clinux_epoll_add(
      set.raw, queue.raw, UInt32(CLINUX_EPOLLIN) | Self.edgeTriggered, UInt64(names.count))
    guard result == 0 else { return result == -EEXIST }
    names.append(.messageQueue)
    return true
  }

  /// What is there when the worker has just fallen asleep, and has it had its chance? There are
  /// three cases, and each kind of data is in one of them whenever it comes:
  ///
  /// 1. Unread, and the worker was woken for it before (`ignored`): its own choice. Only more of it
  ///    counts. What comes after this look is an edge, and found by `nextReason`.
  /// 2. Unread, and not ignored: it came around the freeze, or the worker was too busy. Wake.
  /// 3. Read by the worker, and then it was frozen before it had answered. Nothing is left to see
  ///    but TCP's clocks; see `isUnanswered`.
  mutating func sortOut(served: Set<UInt16>, openFor limit: Duration) -> String? {
    // First the edges, then the amounts: the other way round, what comes in between would show in
    // neither.
    let edges = WakeSources.drain(set)
    for edge in edges {
      let index = Int(truncatingIfNeeded: edge.data)
      if openings[index] != nil { continue }
      if edge.events & UInt32(CLINUX_EPOLLOUT) == 0, let (input, before) = doubtful[index],
        UnreadInput(input).map({ !$0.hasMore(than: before) }) ?? true
      {
        continue
      }
      return WakeSources.sentence(names[index], events: edge.events, served: served)
    }
    for (index, opening) in openings where opening.isOpened {
      return WakeSources.sentence(names[index], events: 0, served: served)
    }
    for (index, traffic) in traffic {
      guard case .connection(.internet(_, let port), _) = names[index], served.contains(port),
        traffic.isUnanswered(within: limit)
      else { continue }
      return "a request on port \(port) that it had not answered"
    }
    return nil
  }

  /// EPOLLET; the shims have no name for it.
  private static let edgeTriggered: UInt32 = 1 << 31
}
