import CLinux
import Glibc
import Linux

/// The sockets and pipes of a sleeping worker. The daemon watches them instead of the worker. No
/// process stands between the worker and its clients, and nothing is read.
///
///     worker (frozen)              daemon
///     listener ───────┐  ADD       ┌ epoll of this worker ──▶ event loop ──▶ wakeNeeded
///     connections ────┼───────────▶│  (holds no reference)
///     stdin, pipes ───┘            └
///
/// Each descriptor is duplicated (pidfd_getfd(2)) and added to one epoll set, and the duplicate is
/// closed again. An epoll set watches a file as long as *any* process has it open (epoll(7), Q6),
/// and keeps none open itself. So a worker's connections close when it closes them or ends,
/// sleeping costs one descriptor whatever the number of connections, and closing the set ends all
/// watches.
///
/// The set is edge-triggered: a descriptor reports what arrives, not what is unread. What is unread
/// already is examined once, when the set is made; see `sortOut`.
public final class WakeSources: Sendable {
  /// Readable when `nextReason` has a reason.
  public var descriptor: Descriptor { epoll.descriptor }
  private let epoll: Epoll
  /// The reason to wake the worker at once: input that arrived before it slept, and that it hadn't
  /// handled. It is nil if there is none.
  public let waiting: String?
  /// All unread input, for the next time that the worker falls asleep.
  public let unreadBaseline: UnreadInputBaseline
  /// Errors of inputs that can't be watched. The worker could miss a request there.
  public let refusals: [SystemCallError]
  /// Listeners that aren't watched here, because the daemon answers there.
  public let answered: [AsleepListener]
  /// Events that the worker waits for and that can't be watched, as clauses: `the release of a file
  /// lock`.
  public let unwatched: [String]
  private let names: [InputName]
  private let served: Set<UInt16>
  /// FIFOs that the worker waits to open, by index.
  private let openings: [Int: AwaitedOpening]

  public var count: Int { names.count }
  /// True if something other than the worker itself can give it work: a client at a listener or a
  /// datagram socket, or its standard input.
  public var hasClients: Bool { !answered.isEmpty || names.contains(where: \.isForClients) }

  /// The default of `openFor`, for a worker that may be in the middle of other work.
  public static let recently = Duration.seconds(2)

  /// Watches the inputs of a worker that is frozen or stopped. It needs the right to trace the
  /// worker.
  ///
  /// - Parameters:
  ///   - ignored: the input that the worker leaves unread by choice.
  ///   - ports: the ports whose listeners the daemon watches elsewhere to answer health checks.
  ///   - limit: the age up to which an unanswered request counts as open. Without an answer for
  ///     longer, the worker itself waits.
  public init(
    of tree: ProcessTree, daemonSockets: Set<String>,
    ignored: UnreadInputBaseline = UnreadInputBaseline(),
    answering ports: Set<UInt16> = [], openFor limit: Duration = recently
  ) throws(SystemCallError) {
    let epoll = try Epoll()
    var register = Register(set: epoll, ignored: ignored)
    let inputs = WorkerInputs(of: tree, daemonSockets: daemonSockets)
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
    self.epoll = epoll
    names = register.names
    unreadBaseline = register.unreadBaseline
    served = Set(names.compactMap(\.listeningPort)).union(answered.map(\.port))
    waiting = register.sortOut(served: served, openFor: limit)
  }

  /// Keeps the FIFOs that were opened for the worker open until `handOverOpened`.
  public func keepOpened() {
    for opening in openings.values where opening.isOpened { opening.keepOpen() }
  }

  /// Hands over the FIFOs that were opened for the worker. Call it once, when the worker is about
  /// to run, or runs.
  public func handOverOpened() {
    for opening in openings.values where opening.isOpened { opening.handOver() }
  }

  /// The reason to wake the worker, from what has arrived since the last call, or nil if nothing
  /// has. It never blocks.
  public func nextReason() -> String? {
    var reason: String?
    for event in epoll.drain() {
      let index = Int(truncatingIfNeeded: event.token)
      guard reason == nil, names.indices.contains(index) else { continue }
      // The writer may have closed it again, or another process has only inspected the FIFO.
      if let opening = openings[index], !opening.isOpened { continue }
      reason = Self.sentence(names[index], events: event.what, served: served)
    }
    return reason
  }

  fileprivate static func sentence(
    _ name: InputName, events: Epoll.Interest, served: Set<UInt16>
  ) -> String {
    let isHangUp = !events.isDisjoint(with: [.hangUp, .peerHangUp, .error])
    if !isHangUp, !events.contains(.readable), events.contains(.writable) {
      return name.sentenceOfRoom(served: served)
    }
    return name.sentence(isHangUp: isHangUp, served: served)
  }
}

/// Fills a set, and finds out which input was missed.
private struct Register {
  let set: Epoll
  let ignored: UnreadInputBaseline
  var names: [InputName] = []
  var unreadBaseline = UnreadInputBaseline()
  /// Inputs that were unread before the freeze, by index, with what is needed to sample them again.
  var doubtful: [Int: (input: WorkerInput, before: UnreadInput)] = [:]
  var traffic: [Int: SocketFacts.Traffic] = [:]
  var openings: [Int: AwaitedOpening] = [:]

  mutating func add(_ input: WorkerInput) throws(SystemCallError) {
    let index = names.count
    var interest: Epoll.Interest = [.readable, .peerHangUp, .edgeTriggered]
    // The worker may have more to send than there is room for: its client waits for the remainder.
    if let facts = input.facts, facts.isStream, !facts.isListening, !input.duplicate.isWritable {
      interest.insert(.writable)
    }
    do throws(SystemCallError) {
      try set.add(
        input.duplicate.raw, interest, token: UInt64(index),
        on: "descriptor \(input.open.number) of \(input.pid)")
    } catch {
      switch (error.code, input.open.kind) {
      // This file is in the set already, through another process's descriptor.
      case (EEXIST, _): return recordUnread(input)
      // The device has no events.
      case (EPERM, .device): return
      default: throw error
      }
    }
    names.append(InputName(input))
    recordUnread(input)
    if let before = ignored.unread[input.key] { doubtful[index] = (input, before) }
    // A request that is still unread isn't being answered.
    if let facts = input.facts, facts.unread == 0 { traffic[index] = facts.traffic }
  }

  private mutating func recordUnread(_ input: WorkerInput) {
    if let unread = UnreadInput(input) { unreadBaseline.unread[input.key] = unread }
  }

  /// Watches calls in which the worker waits for another process without a descriptor. Returns
  /// clauses for those that can't be watched.
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
      try set.add(
        descriptor.raw, [.readable, .edgeTriggered], token: UInt64(index), on: path)
    }
    names.append(.opening(path: path))
    openings[index] = opening
    return true
  }

  private mutating func add(queue number: Int32, of pid: Int32) -> Bool {
    // A refused queue is listed as unwatched.
    guard let pidfd = try? Descriptor.pidfd(of: pid) else { return false }
    let queue = Descriptor(foreign: clinux_pidfd_getfd(pidfd.raw, number))
    do throws(SystemCallError) {
      try set.add(queue.raw, [.readable, .edgeTriggered], token: UInt64(names.count))
    } catch { return error.code == EEXIST }
    names.append(.messageQueue)
    return true
  }

  /// Finds a reason to wake a worker that has just fallen asleep. Input is in one of three cases:
  ///
  /// 1. It is unread, and the worker was woken for it before (`ignored`). Leaving it is the
  ///    worker's own choice, and only more input counts. Input that arrives after this call is an
  ///    edge, and `nextReason` finds it.
  /// 2. It is unread and not ignored: it arrived around the freeze, or the worker was too busy. The
  ///    worker is woken.
  /// 3. The worker has read it, and was frozen before it had answered. Only TCP's clocks show that;
  ///    see `isUnanswered`.
  mutating func sortOut(served: Set<UInt16>, openFor limit: Duration) -> String? {
    // Edges are read before amounts. In the other order, input that arrives in between would be in
    // neither.
    for edge in set.drain() {
      let index = Int(truncatingIfNeeded: edge.token)
      if openings[index] != nil { continue }
      if !edge.what.contains(.writable), let (input, before) = doubtful[index],
        UnreadInput(input).map({ !$0.hasMore(than: before) }) ?? true
      {
        continue
      }
      return WakeSources.sentence(names[index], events: edge.what, served: served)
    }
    for (index, opening) in openings where opening.isOpened {
      return WakeSources.sentence(names[index], events: [], served: served)
    }
    for (index, traffic) in traffic {
      guard case .connection(.internet(_, let port), _) = names[index], served.contains(port),
        traffic.isUnanswered(within: limit)
      else { continue }
      return "a request on port \(port) that it had not answered"
    }
    return nil
  }
}
