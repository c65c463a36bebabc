import CLinux
import Linux
import Synchronization

/// Detects whether a client communicates with a running worker. Processor time doesn't show this part of
/// "idle": a light request costs less than many a program's own timers.
///
/// Input is seen by a latch on a set of all its inputs, even if it was served and over between two looks. Like
/// `WakeSources` it holds no reference to any of them. Output, and requests that weren't answered, are seen in
/// TCP's own counters, through duplicates that are held for microseconds.
///
/// Belongs to the event loop's thread; look about once a second. A look has two halves: `begin` on that
/// thread, and `Look.perform` on any other. The second asks the worker's sockets and files, which may wait:
/// a socket for a program that is writing to it, a file for its file system.
public final class TrafficMonitor {
  private let latches: InputLatches?
  private let latch: InputLatches.Latch?
  private let inputs: MonitoredInputs
  private var looksUntilScan = 0
  private var isFirst = true

  /// A request that hasn't been answered for this long counts as one that never will be: a message that wants
  /// no answer, HTTP/2's housekeeping. A worker can announce a longer one as a background task.
  public static let maxRequest = Duration.seconds(60)

  /// Looks after which the worker's descriptors are listed again though nothing has come: it may
  /// have opened some itself.
  private static let scanInterval = 8

  /// One look, for another thread.
  public struct Look: Sendable {
    fileprivate let inputs: MonitoredInputs
    fileprivate let isListed: Bool
    fileprivate let isFirst: Bool
    /// Something has come in since the last look; the first look doesn't say.
    public let hasInput: Bool
    /// Something else than the worker itself can give it work, as in `WakeSources`. After `perform`.
    public var hasClients: Bool { inputs.hasClients }
    /// Where the traffic came from, if that is known. After `perform`.
    public var source: TrafficSource? { inputs.source }
    /// The ports at which the worker listens. After `perform`.
    public var ports: Set<UInt16> { inputs.served }
    /// The inputs at which something has come in.
    fileprivate let fired: [UInt64]

    /// Whether there was traffic since the last look, or a request is open. The first look finds open requests only:
    /// after a wake the worker may fall asleep again before a second one.
    public func perform(at tree: ProcessTree) -> Bool {
      inputs.look(at: tree, isListed: isListed, isFirst: isFirst, fired: hasInput ? fired : [])
        || hasInput
    }
  }

  /// `latches`: nil where the kernel has none; then only what is still open at a look is seen. `ignored`: ports
  /// at which only health checks connect.
  public init(
    latches: InputLatches?, ownChannels: Set<String>, ignored: Set<UInt16> = []
  ) throws(SystemCallError) {
    inputs = MonitoredInputs(
      set: Descriptor(owning: try shim("epoll_create1") { clinux_epoll_create() }),
      ownChannels: ownChannels, ignored: ignored)
    self.latches = latches
    latch = latches?.add()
  }

  deinit {
    if let latch { latches?.remove(latch) }
  }

  /// `latches.take` comes before; the look before has been performed.
  public func begin() -> Look {
    let hasInput = latch?.hasFired ?? false
    let isListed = latch == nil || hasInput || looksUntilScan == 0
    if hasInput || isFirst {
      // The next look lists again: a connection that the worker accepts after this listing isn't in it, and
      // causes no event any more.
      looksUntilScan = 0
    } else {
      looksUntilScan = isListed ? Self.scanInterval : looksUntilScan - 1
    }
    // Cleared and armed before anything is added: what comes from here on belongs to the next look.
    let fired = latch?.isArmed != true ? arm() : []
    defer { isFirst = false }
    return Look(
      inputs: inputs, isListed: isListed, isFirst: isFirst, hasInput: hasInput && !isFirst,
      fired: fired)
  }

  /// Both halves.
  public func look(at tree: ProcessTree) -> Bool { begin().perform(at: tree) }

  /// - Returns: the inputs at which something has come in.
  private func arm() -> [UInt64] {
    guard let latch, let latches else { return [] }
    var events = [clinux_event](repeating: clinux_event(), count: 64)
    var fired: [UInt64] = []
    while case let count = clinux_epoll_wait(inputs.set.raw, &events, 64, 0), count > 0 {
      fired += events.prefix(Int(count)).map(\.data)
    }
    // Without a latch each look asks the kernel again.
    try? latches.arm(latch, at: inputs.set)
    return fired
  }
}

/// The inputs of a worker that `TrafficMonitor` watches. Used by one thread at a time.
private final class MonitoredInputs: Sendable {
  let set: Descriptor
  private let ownChannels: Set<String>
  private let ignored: Set<UInt16>
  private let state = Mutex(State())

  private struct State {
    var known: Set<InputKey> = []
    var served: Set<UInt16> = []
    var clients: Set<InputKey> = []
    var connections: [Connection] = []
    var nextConnection = 0
    /// By the number that the set of inputs has for them.
    var names: [UInt64: InputName] = [:]
    var numbers: [InputKey: UInt64] = [:]
    var lastNumber: UInt64 = 0
    /// A connection that was made since the last look.
    var new: TrafficSource?
    var source: TrafficSource?
  }

  private struct Connection {
    var pid: Int32
    var open: OpenDescriptor
    var carried: UInt64?
  }

  /// Connections whose counters are read at one look; the next look continues from there.
  private static let maxConnections = 256

  init(set: Descriptor, ownChannels: Set<String>, ignored: Set<UInt16>) {
    self.set = set
    self.ownChannels = ownChannels
    self.ignored = ignored
  }

  func look(
    at tree: ProcessTree, isListed: Bool, isFirst: Bool, fired: [UInt64]
  ) -> Bool {
    state.withLock { state in
      (state.new, state.source) = (nil, nil)
      // Before the listing, which forgets inputs that are closed.
      let names = fired.compactMap { state.names[$0] }
      if isListed { scan(tree, isFirst: isFirst, state: &state) }
      let hasTraffic = Self.countTraffic(&state)
      let served = state.served
      state.source =
        state.source ?? state.new
        ?? (names.first { $0.isForClients } ?? names.first).map {
          TrafficSource($0, served: served)
        }
      return hasTraffic
    }
  }

  var source: TrafficSource? { state.withLock { $0.source } }
  var served: Set<UInt16> { state.withLock { $0.served } }

  var hasClients: Bool { state.withLock { !$0.clients.isEmpty } }

  private func scan(_ tree: ProcessTree, isFirst: Bool, state: inout State) {
    let inputs = WorkerInputs(of: tree, ownChannels: ownChannels)
    let present = Set(inputs.candidates.map { InputKey($0.open, of: $0.pid) })
    state.known.formIntersection(present)
    state.clients.formIntersection(present)
    for (key, number) in state.numbers where !present.contains(key) {
      state.numbers[key] = nil
      state.names[number] = nil
    }
    let remembered = Dictionary(
      state.connections.map { (InputKey($0.open, of: $0.pid), $0.carried) },
      uniquingKeysWith: { first, _ in first })
    // The same end may be reached through another process by now.
    state.connections = inputs.candidates.compactMap { pid, open in
      remembered[InputKey(open, of: pid)].map { Connection(pid: pid, open: open, carried: $0) }
    }
    let known = state.known
    _ = inputs.forEach(where: { !known.contains($0) }) { input in
      state.known.insert(input.key)
      add(input, isFirst: isFirst, state: &state)
    }
  }

  private func add(_ input: WorkerInput, isFirst: Bool, state: inout State) {
    if InputName(input).isForClients { state.clients.insert(input.key) }
    if case .internet(_, let port)? = input.facts?.local, ignored.contains(port) { return }
    // EPOLLET, as in `WakeSources`: what the worker leaves unread is no traffic.
    let interest = UInt32(CLINUX_EPOLLIN | CLINUX_EPOLLRDHUP) | 1 << 31
    let name = InputName(input)
    state.lastNumber += 1
    state.names[state.lastNumber] = name
    state.numbers[input.key] = state.lastNumber
    _ = clinux_epoll_add(set.raw, input.duplicate.raw, interest, state.lastNumber)
    if let port = name.listeningPort { state.served.insert(port) }
    if !isFirst, let facts = input.facts {
      state.new = TrafficSource(facts, served: state.served) ?? state.new
    }
    if input.facts?.traffic != nil {
      state.connections.append(
        Connection(pid: input.pid, open: input.open, carried: isFirst ? nil : 0))
    }
  }

  private static func countTraffic(_ state: inout State) -> Bool {
    var found = false
    var pidfd: (pid: Int32, descriptor: Descriptor)?
    for _ in 0..<min(state.connections.count, maxConnections) {
      state.nextConnection = (state.nextConnection + 1) % state.connections.count
      let connection = state.connections[state.nextConnection]
      if pidfd?.pid != connection.pid {
        // nil: it has ended.
        pidfd = (try? Descriptor.pidfd(of: connection.pid)).map { (connection.pid, $0) }
      }
      guard let pidfd,
        // nil: it has been closed, or can't be looked into.
        let input = try? WorkerInputs.duplicate(
          connection.open, of: connection.pid, from: pidfd.descriptor),
        let facts = input.facts, let traffic = facts.traffic
      else { continue }
      let carried = traffic.received &+ traffic.sent
      if let before = connection.carried, before != carried {
        found = true
        state.source = state.source ?? TrafficSource(facts, served: state.served)
      }
      state.connections[state.nextConnection].carried = carried
      // Only where the other end sends the requests. To a client of a database, the database always has the
      // last word.
      if case .internet(_, let port) = facts.local, state.served.contains(port),
        traffic.isUnanswered(within: TrafficMonitor.maxRequest)
      {
        found = true
        state.source = state.source ?? TrafficSource(facts, served: state.served)
      }
    }
    return found
  }
}
