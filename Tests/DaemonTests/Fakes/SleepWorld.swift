import Glibc
import Lifecycle
import Linux
import Policy
import TestSupport

@testable import Daemon
@testable import Supervision

/// One run of a worker that sleeps: the real `WorkerSleep` and `WakeWatch`. Memory, inputs, the
/// disk and time change when a test says so. The test's own process represents the worker's
/// process.
final class SleepWorld {
  let timers = FakeLoop()
  let watches = FakeLoop()
  let memory = FakeMemory()
  let notes = EventNotes()
  let driver: EngineDriver
  let workers = WorkerRegistry()
  let worker: WorkerUnit
  let sleeps: WorkerSleeps
  let inputs: FakeInputs
  /// The readings of the images' disk.
  let disk = Pending<ImageDisk?>(immediate: { ImageDisk() })
  private let kills = Recorded<WorkerID>()
  private let scratch: Scratch
  private let log: TestLog

  /// - Parameter state: the worker's state in the engine.
  init(_ state: WorkerState = .suspending) throws {
    scratch = try Scratch()
    log = TestLog(in: scratch)
    inputs = try FakeInputs()
    driver = .forTest(timers, notes)
    weak var monitor: ImageDiskMonitor?
    let imageDisk = ImageDiskMonitor(
      directory: scratch.path, ledger: WriteLedger(path: scratch.path + "/writes"),
      ImageDiskMonitor.Needs(
        read: { [disk] in
          monitor?.didBeginReading()
          disk.add($0)
        }, send: { [driver] in driver.send($0) }, save: { _ in }, time: { 0 }, log: { _, _ in }))
    monitor = imageDisk
    sleeps = WorkerSleeps(
      driver: driver, workers: workers, timers: timers, watches: watches, memory: memory,
      imageDisk: imageDisk, log: log.log, kill: { [kills] in kills.all.append($0) })
    worker = .forTest("web")
    worker.process = try .forTest("web")
    driver.send(.adopted(worker.id, worker.profile, state))
    notes.forget()
  }

  var id: WorkerID { worker.id }

  /// Makes the sleep of a new run.
  func makeSleep() throws -> WorkerSleep {
    sleeps.makeSleep(for: worker)
    guard let sleep = worker.sleep else { throw TestFailure("it has no sleep") }
    return sleep
  }

  func makeWatch() -> WakeWatch {
    let watch = WakeWatch(of: worker, sleeps)
    worker.wakeWatch = watch
    return watch
  }

  /// The events that the engine has got, except those about the disk.
  var events: [Event] { notes.all.filter { if case .disk = $0 { false } else { true } } }
  /// The names of these events.
  var named: [String] { notes.events.filter { $0 != "disk" } }

  /// The reasons for which the engine was asked to wake the worker, in order.
  var wakes: [String] {
    events.compactMap { if case .wakeNeeded(_, let reason) = $0 { reason } else { nil } }
  }

  var isWatched: Bool { worker.wakeWatch?.isWatching == true }
  var killed: [WorkerID] { kills.all }

  /// The lines that were logged about the worker.
  var logged: [String] { log.lines(about: id.name) }
}

/// The inputs of a worker. A test lets input arrive. They are used on the test's thread only.
final class FakeInputs: WakeInputs, @unchecked Sendable {
  private let counter: EventCounter
  private var arrived: [String] = []
  var waiting: String?
  var unreadBaseline = UnreadInputBaseline()
  var refusals: [SystemCallError] = []
  var answered: [AsleepListener] = []
  var unwatched: [String] = []
  private(set) var keeps = 0
  private(set) var admissions = 0
  let hasClients = true

  init() throws { counter = try EventCounter() }

  var descriptor: Descriptor { counter.descriptor }

  func arrive(_ reason: String) {
    arrived.append(reason)
    counter.signal()
  }

  func nextReason() -> String? {
    counter.clear()
    defer { arrived = [] }
    return arrived.first
  }

  func keepOpened() { keeps += 1 }

  func handOverOpened() { admissions += 1 }
}

extension WorkerInput {
  /// An input of the test's own process, as if it were the worker's.
  static func ofTest(_ descriptor: Descriptor) throws -> WorkerInput {
    let all = try OpenDescriptor.list(of: getpid())
    guard let open = all.first(where: { $0.number == descriptor.raw }) else {
      throw TestFailure("no descriptor \(descriptor.raw)")
    }
    return WorkerInput(
      pid: getpid(), open: open, duplicate: descriptor, facts: try? SocketFacts.read(descriptor))
  }
}

/// A listening socket of the test's own process at a free port, as if it were a sleeping worker's.
struct TestListener {
  let listener: Listener
  let port: UInt16
  let asleep: AsleepListener

  init() throws {
    listener = try Listener.open(ListenSocket(name: "", address: .tcp(host: "127.0.0.1", port: 0)))
    port = localPort(of: listener.descriptor.raw)
    guard let asleep = AsleepListener(try .ofTest(listener.descriptor), answered: [port]) else {
      throw TestFailure("port \(port) isn't one at which health checks are answered")
    }
    self.asleep = asleep
  }

  func wait(for queue: AsleepListener.Queue) throws {
    guard try eventually({ asleep.inspect() == queue }) else {
      throw TestFailure("the queue is \(asleep.inspect()), and not \(queue)")
    }
  }
}

/// A client over TCP at 127.0.0.1, or over a Unix socket. It never waits for an answer, because the
/// daemon runs on the same thread.
final class LoopbackClient {
  private let socket: Descriptor
  private(set) var received = ""

  init(_ port: UInt16) throws {
    socket = Descriptor(
      owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    guard withLoopback(port, { connect(socket.raw, $0, $1) }) == 0 else {
      throw TestFailure("connect to port \(port): errno \(errno)")
    }
  }

  func say(_ text: String) throws { try socket.writeAll(text) }

  /// Shuts the connection down in both directions.
  func hangUp() { shutdown(socket.raw, Int32(SHUT_RDWR)) }

  /// Reads what has arrived. Returns true when the other end has closed its direction.
  func readToEnd() -> Bool {
    let arrived = socket.arrived()
    received += String(decoding: arrived.bytes, as: UTF8.self)
    return arrived.isAtEnd
  }
}
