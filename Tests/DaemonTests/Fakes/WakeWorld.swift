import Glibc
import Lifecycle
import Linux
import Policy
import TestSupport

@testable import Daemon
@testable import Supervision

/// What one run of a worker is woken by: inputs that a test moves, time that passes when a test says so, no process.
final class WakeWorld: WakeHost {
  let id = WorkerID("web")
  let timers = FakeTimers()
  let watches = FakeWatches()
  var healthChecksWhileAsleep: [AsleepAnswer] = []
  private(set) var prioritized = 0
  private(set) var events: [Event] = []
  private(set) var logged: [String] = []
  private(set) var ends = 0

  func makeWatch() -> WakeWatch { WakeWatch(id, watches: watches, timers: timers, host: self) }

  /// Why the engine was asked to wake it, in order.
  var wakes: [String] {
    events.compactMap { if case .wakeNeeded(_, let why) = $0 { why } else { nil } }
  }

  func prioritize() { prioritized += 1 }
  func send(_ event: Event) { events.append(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { logged.append(text) }
  func watchHasEnded() { ends += 1 }
}

/// A worker's inputs, at which a test lets something arrive.
final class FakeInputs: WakeInputs {
  private let counter: EventCounter
  private var arrived: [String] = []
  var waiting: String?
  var leftUnread = LeftUnread()
  var refusals: [SystemCallError] = []
  var answered: [AsleepListener] = []
  var unwatched: [String] = []
  var hasClients = true
  private(set) var admissions = 0

  init() throws { counter = try EventCounter() }

  var descriptor: Descriptor { counter.descriptor }

  func arrive(_ why: String) {
    arrived.append(why)
    counter.signal()
  }

  func nextReason() -> String? {
    counter.clear()
    defer { arrived = [] }
    return arrived.first
  }

  func admitOpened() { admissions += 1 }
}

extension WorkerInput {
  /// A descriptor of the test's own process, as if that were the worker's.
  static func own(_ descriptor: Descriptor) throws -> WorkerInput {
    let all = try OpenDescriptor.list(of: getpid())
    guard let open = all.first(where: { $0.number == descriptor.raw }) else {
      throw TestFailure("no descriptor \(descriptor.raw)")
    }
    return WorkerInput(
      pid: getpid(), open: open, duplicate: descriptor, facts: try? SocketFacts.read(descriptor))
  }
}

/// A listening socket of the test's own process, at a free port, as a sleeping worker's.
struct OwnListener {
  let listener: Listener
  let port: UInt16
  let asleep: AsleepListener

  init() throws {
    listener = try Listener.open(ListenSocket(name: "", address: .tcp(host: "127.0.0.1", port: 0)))
    port = localPort(of: listener.descriptor.raw)
    guard let asleep = AsleepListener(try .own(listener.descriptor), answered: [port]) else {
      throw TestFailure("port \(port) isn't one at which health checks are answered")
    }
    self.asleep = asleep
  }

  func wait(for queue: AsleepListener.Queue) throws {
    guard try eventually({ asleep.look() == queue }) else {
      throw TestFailure("the queue is \(asleep.look()), and not \(queue)")
    }
  }
}

/// A client over TCP at 127.0.0.1, or over a Unix socket. It never waits for an answer: the daemon has the same
/// thread.
final class LoopbackClient {
  private let socket: Descriptor
  private(set) var received = ""
  private(set) var isAtEnd = false

  init(_ port: UInt16) throws {
    socket = Descriptor(
      owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    guard withLoopback(port, { connect(socket.raw, $0, $1) }) == 0 else {
      throw TestFailure("connect to port \(port): errno \(errno)")
    }
  }

  func say(_ text: String) throws { try socket.writeAll(text) }

  /// Says that it is done, and leaves.
  func hangUp() { shutdown(socket.raw, Int32(SHUT_RDWR)) }

  /// Takes what has come; true: the other end has said that it is done.
  func readToEnd() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while !isAtEnd {
      let count = recv(socket.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EAGAIN || errno == EINTR { return false }
      isAtEnd = count <= 0
      received += String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
    return true
  }
}
