import Linux
import Synchronization

/// Detects whether a client communicates with a running worker. Processor time doesn't show that: a
/// light request costs less than the timers of many programs.
///
/// Input is detected by a latch on a set of all inputs, even if it arrived and was served between
/// two samples. Like `WakeSources` the set holds no reference to the inputs. Output and unanswered
/// requests are read from TCP's own counters, through duplicates that exist for microseconds.
///
/// It belongs to the event loop's thread. Take a sample about once a second. A sample has two
/// halves: `begin` on that thread, and `Sample.perform` on any other. The second half reads the
/// worker's sockets and files, which may block: a socket on a program that is writing to it, a file
/// on its file system.
public final class TrafficMonitor {
  private let latches: InputLatches?
  private let latch: InputLatches.Latch?
  private let inputs: MonitoredInputs
  private var samplesUntilScan = 0
  private var isFirst = true
  /// Input has arrived, and no sample with it has been reported yet.
  private var owesInput = false

  /// The time after which an open request counts as one that gets no answer, such as HTTP/2's
  /// housekeeping. A worker can announce longer work as a background task.
  public static let maxRequest = Duration.seconds(60)

  /// The number of samples after which the worker's descriptors are listed again although no input
  /// has arrived: the worker may have opened some itself.
  private static let scanInterval = 8

  /// One sample, for another thread.
  public struct Sample: Sendable {
    fileprivate let inputs: MonitoredInputs
    fileprivate let isListed: Bool
    fileprivate let isFirst: Bool
    /// True if input has arrived since the last sample. It is always false in the first sample.
    public let hasInput: Bool
    /// True if something other than the worker itself can give it work, as in `WakeSources`. It is
    /// valid after `perform`.
    public var hasClients: Bool { inputs.hasClients }
    /// The source of the traffic, if it is known. It is valid after `perform`.
    public var source: TrafficSource? { inputs.source }
    /// The ports at which the worker listens. They are valid after `perform`.
    public var ports: Set<UInt16> { inputs.served }
    /// The inputs at which input has arrived.
    fileprivate let fired: [UInt64]

    /// Whether there was traffic since the last sample, or a request is open. The first sample
    /// detects open requests only: after a wake, the worker may fall asleep again before a second
    /// one.
    public func perform(at tree: ProcessTree) -> Bool {
      inputs.sample(at: tree, isListed: isListed, isFirst: isFirst, fired: hasInput ? fired : [])
        || hasInput
    }
  }

  /// - Parameters:
  ///   - latches: nil if the kernel has none. Then only input that is unread at a sample is
  ///     detected.
  ///   - ignored: the ports at which only health checks connect.
  public init(
    latches: InputLatches?, daemonSockets: Set<String>, ignored: Set<UInt16> = []
  ) throws(SystemCallError) {
    inputs = MonitoredInputs(
      set: try Epoll(), daemonSockets: daemonSockets, ignored: ignored)
    self.latches = latches
    latch = latches?.add()
  }

  deinit {
    if let latch { latches?.remove(latch) }
  }

  /// The first half of a sample. Call `latches.collect` before it. Call `didReport` when the sample
  /// has an outcome. Otherwise the next sample reports its input again.
  public func begin() -> Sample {
    let hasInput = latch?.hasFired ?? false || owesInput
    owesInput = hasInput && !isFirst
    let isListed = latch?.isArmed != true || samplesUntilScan == 0
    if hasInput || isFirst {
      // The next sample lists the descriptors again: a connection that the worker accepts after
      // this listing isn't in it, and causes no event any more.
      samplesUntilScan = 0
    } else {
      samplesUntilScan = isListed ? Self.scanInterval : samplesUntilScan - 1
    }
    // The latch is cleared and armed before inputs are added: input that arrives from here on
    // belongs to the next sample.
    let fired = latch?.isArmed != true ? arm() : []
    defer { isFirst = false }
    return Sample(
      inputs: inputs, isListed: isListed, isFirst: isFirst, hasInput: hasInput && !isFirst,
      fired: fired)
  }

  /// Records that the outcome of the last sample was received.
  public func didReport() { owesInput = false }

  /// Arms the latch again. Returns the inputs at which input has arrived.
  private func arm() -> [UInt64] {
    guard let latch, let latches else { return [] }
    let fired = inputs.set.drain().map(\.token)
    // If the latch can't be armed, each sample tries it again, and lists the descriptors.
    try? latches.arm(latch, at: inputs.set.descriptor)
    return fired
  }
}

/// The inputs of a worker that `TrafficMonitor` watches. One thread at a time uses it.
private final class MonitoredInputs: Sendable {
  let set: Epoll
  private let daemonSockets: Set<String>
  private let ignored: Set<UInt16>
  private let state = Mutex(State())

  private struct State {
    var listed: Set<InputKey> = []
    var served: Set<UInt16> = []
    var clients: Set<InputKey> = []
    var connections: [Connection] = []
    var nextConnection = 0
    /// The names of inputs, by their number in the epoll set.
    var names: [UInt64: InputName] = [:]
    var numbers: [InputKey: UInt64] = [:]
    var lastNumber: UInt64 = 0
    /// The source of a connection that was made since the last sample.
    var new: TrafficSource?
    var source: TrafficSource?
  }

  private struct Connection {
    var pid: Int32
    var open: OpenDescriptor
    var carried: UInt64?
  }

  /// The number of connections whose counters are read in one sample. The next sample continues
  /// after them.
  private static let maxConnections = 256

  init(set: Epoll, daemonSockets: Set<String>, ignored: Set<UInt16>) {
    self.set = set
    self.daemonSockets = daemonSockets
    self.ignored = ignored
  }

  func sample(
    at tree: ProcessTree, isListed: Bool, isFirst: Bool, fired: [UInt64]
  ) -> Bool {
    state.withLock { state in
      (state.new, state.source) = (nil, nil)
      // The names are read before the listing, which removes inputs that are closed.
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
    // A running program reads its own completions. Polling its ring could interrupt its calls.
    let inputs = WorkerInputs(of: tree, daemonSockets: daemonSockets, includesRings: false)
    let present = Set(inputs.candidates.map { InputKey($0.open, of: $0.pid) })
    state.listed.formIntersection(present)
    state.clients.formIntersection(present)
    for (key, number) in state.numbers where !present.contains(key) {
      state.numbers[key] = nil
      state.names[number] = nil
    }
    let remembered = Dictionary(
      state.connections.map { (InputKey($0.open, of: $0.pid), $0.carried) },
      uniquingKeysWith: { first, _ in first })
    // By now the socket may be open in another process only.
    state.connections = inputs.candidates.compactMap { pid, open in
      remembered[InputKey(open, of: pid)].map { Connection(pid: pid, open: open, carried: $0) }
    }
    let listed = state.listed
    _ = inputs.forEach(where: { !listed.contains($0) }) { input in
      state.listed.insert(input.key)
      add(input, isFirst: isFirst, state: &state)
    }
  }

  private func add(_ input: WorkerInput, isFirst: Bool, state: inout State) {
    if InputName(input).isForClients { state.clients.insert(input.key) }
    if case .internet(_, let port)? = input.facts?.local, ignored.contains(port) { return }
    let name = InputName(input)
    state.lastNumber += 1
    state.names[state.lastNumber] = name
    state.numbers[input.key] = state.lastNumber
    // The set is edge-triggered, as in `WakeSources`: input that the worker leaves unread is no
    // traffic. At a file without events there is none.
    let interest: Epoll.Interest = [.readable, .peerHangUp, .edgeTriggered]
    try? set.add(input.duplicate.raw, interest, token: state.lastNumber)
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
    var hasTraffic = false
    var pidfd: (pid: Int32, descriptor: Descriptor)?
    for _ in 0..<min(state.connections.count, maxConnections) {
      state.nextConnection = (state.nextConnection + 1) % state.connections.count
      let connection = state.connections[state.nextConnection]
      if pidfd?.pid != connection.pid {
        // It is nil if the process has ended.
        pidfd = (try? Descriptor.pidfd(of: connection.pid)).map { (connection.pid, $0) }
      }
      guard let pidfd,
        // It is nil if the descriptor was closed, or can't be duplicated.
        let input = try? WorkerInputs.duplicate(
          connection.open, of: connection.pid, from: pidfd.descriptor),
        let facts = input.facts, let traffic = facts.traffic
      else { continue }
      let carried = traffic.received &+ traffic.sent
      if let before = connection.carried, before != carried {
        hasTraffic = true
        state.source = state.source ?? TrafficSource(facts, served: state.served)
      }
      state.connections[state.nextConnection].carried = carried
      // This only applies if the other end sends the requests. If the worker is a client of a
      // database, the database always sends last.
      if case .internet(_, let port) = facts.local, state.served.contains(port),
        traffic.isUnanswered(within: TrafficMonitor.maxRequest)
      {
        hasTraffic = true
        state.source = state.source ?? TrafficSource(facts, served: state.served)
      }
    }
    return hasTraffic
  }
}
