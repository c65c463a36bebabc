import CWorkerKit
import JSONLines
import Synchronization
import WorkerProtocol

/// The connection to the daemon: a thread that reads lines, and connects again after a connection
/// has ended.
///
/// A caller writes its message to the socket at once, as much as the socket accepts. The thread
/// writes the remainder. No caller ever waits for the daemon.
final class Connection: Sendable {
  /// What the thread reports, in order.
  enum Incoming: Sendable {
    case message(DaemonMessage, connection: Int)
    /// A connection has ended.
    case ended
  }

  private struct State {
    var session = SessionState()
    var socket: Int32 = -1
    /// The number of connections so far. Ids belong to one daemon, so an answer is sent only on the
    /// connection of its request.
    var number = 0
    var outbox = Outbox()
    var isStopped = false
  }

  /// The minimum time between two attempts to connect, in milliseconds.
  private static let pause: Int64 = 1000

  private let path: String
  private let state = Mutex(State())
  private let wakeReading: Int32
  private let wakeWriting: Int32

  /// The result is `nil` if the process has no descriptor left.
  init?(path: String) {
    var reading: Int32 = -1
    var writing: Int32 = -1
    guard workerkit_pipe(&reading, &writing) >= 0 else { return nil }
    self.path = path
    wakeReading = reading
    wakeWriting = writing
  }

  deinit {
    workerkit_close(wakeReading)
    workerkit_close(wakeWriting)
  }

  /// Starts the thread. It may be called once. The result is false if the system can't create a
  /// thread.
  ///
  /// - Parameter receive: called on the thread, which reads nothing until it returns.
  func start(receive: @escaping @Sendable (Incoming) -> Void) -> Bool {
    let body = Unmanaged.passRetained(ThreadBody { self.run(receive) })
    let code = workerkit_start_thread(
      { argument in
        guard let argument else { return }
        Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
      }, body.toOpaque())
    if code < 0 { body.release() }
    return code >= 0
  }

  private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Ends the thread, soon after this call.
  func stop() {
    state.withLock { $0.isStopped = true }
    workerkit_wake(wakeWriting)
  }

  var isConnected: Bool { state.withLock { $0.socket >= 0 } }

  /// Sends the lines that `change` returns, and keeps its result to send it again on later
  /// connections.
  func update(_ change: (inout SessionState) -> [WorkerMessage]) {
    update { session, outbox in
      for message in change(&session) { outbox.append(message.line) }
    }
  }

  /// Offers the worker's purgeable memory by its descriptor, once on each connection. A worker has
  /// one such memory.
  func offer(_ purgeable: PurgeableHeap) {
    update { session, outbox in
      session.purgeable = purgeable
      outbox.append(WorkerMessage.purgeable.line, descriptor: purgeable.file)
    }
  }

  private func update(_ change: (inout SessionState, inout Outbox) -> Void) {
    state.withLock { state in
      change(&state.session, &state.outbox)
      send(&state)
    }
  }

  /// Answers a request, unless its connection has ended.
  func answer(_ message: WorkerMessage, connection: Int) {
    state.withLock { state in
      guard state.number == connection else { return }
      state.outbox.append(message.line)
      send(&state)
    }
  }

  private func send(_ state: inout State) {
    guard state.socket >= 0 else { return state.outbox.removeAll() }
    let works =
      state.outbox.flush(to: state.socket) && state.outbox.waitingBytes <= Outbox.maxBytes
    // The thread sends the remainder, and handles a broken socket.
    if !works { workerkit_shut(state.socket) }
    if !works || !state.outbox.isEmpty { workerkit_wake(wakeWriting) }
  }
}

// MARK: - On the thread

extension Connection {
  private func run(_ receive: @Sendable (Incoming) -> Void) {
    var earliest = workerkit_milliseconds()
    while waitUntil(earliest) {
      earliest = workerkit_milliseconds() + Self.pause
      let socket = workerkit_connect(path)
      guard socket >= 0 else { continue }
      let number = state.withLock { state in
        state.socket = socket
        state.number += 1
        state.outbox.removeAll()
        state.session.greet(&state.outbox)
        send(&state)
        return state.number
      }
      readAll(socket) { receive(.message($0, connection: number)) }
      state.withLock { state in
        state.socket = -1
        state.outbox.removeAll()
      }
      workerkit_close(socket)
      receive(.ended)
    }
  }

  /// Waits until that time. The result is false if the thread must end.
  private func waitUntil(_ time: Int64) -> Bool {
    while !state.withLock({ $0.isStopped }) {
      let remaining = time - workerkit_milliseconds()
      if remaining <= 0 { return true }
      _ = workerkit_wait(-1, 0, wakeReading, Int32(clamping: remaining))
    }
    return false
  }

  private func readAll(_ socket: Int32, _ receive: (DaemonMessage) -> Void) {
    var framer = LineFramer(maximumLength: WorkerProtocol.maxLine)
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let (isStopped, waits) = state.withLock { ($0.isStopped, !$0.outbox.isEmpty) }
      guard !isStopped else { return }
      let ready = workerkit_wait(socket, waits ? 1 : 0, wakeReading, -1)
      guard ready >= 0 else { return }
      if ready & Int32(WORKERKIT_WRITABLE) != 0 { state.withLock { send(&$0) } }
      guard ready & Int32(WORKERKIT_READABLE) != 0 else { continue }
      let count = workerkit_receive(socket, &buffer, Int64(buffer.count))
      if count == -Int64(workerkit_again) { continue }
      guard count > 0 else { return }
      framer.append(buffer[..<Int(count)])
      guard deliver(&framer, receive) else { return }
    }
  }

  /// Delivers all complete lines. The result is false if a line is longer than the protocol allows.
  private func deliver(_ framer: inout LineFramer, _ receive: (DaemonMessage) -> Void) -> Bool {
    do throws(LineFramer.Overflow) {
      while let line = try framer.next() {
        // A line that can't be read comes from a newer daemon, or from a wrong one. It is ignored
        // in both cases.
        guard let message = try? DaemonMessage.read(line) else { continue }
        receive(message)
      }
      return true
    } catch { return false }
  }
}
