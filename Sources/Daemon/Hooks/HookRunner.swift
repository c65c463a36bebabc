import Control
import Journal
import Lifecycle
import Linux
import Policy
import PolicyFile

/// Runs the commands of `on:`. It gets events from the chronicle while any command is configured. A
/// command starts on another thread, after the event's directives were executed, and nothing waits
/// for it. Belongs to the loop's thread.
final class HookRunner {
  private let services: Services
  private let chronicle: Chronicle
  private let configuration: ConfigurationInForce
  private let workers: WorkerRegistry
  private let environment: [String: String]
  /// The path of the control socket. Commands may send requests there.
  private var socket = ""

  private var queue = HookQueue()
  private var runs: [Int: HookRun] = [:]
  private let nextStart: TimedOperation
  private var counts = DaemonMeasurements.Hooks()
  private var isConfigured = false

  /// The text of an event is cut at this many characters.
  private static let maxText = 4096

  /// - Parameter environment: the environment of the daemon.
  init(
    _ services: Services, _ chronicle: Chronicle, from configuration: ConfigurationInForce,
    workers: WorkerRegistry, environment: [String: String]
  ) {
    self.services = services
    self.chronicle = chronicle
    self.configuration = configuration
    self.workers = workers
    self.environment = environment
    nextStart = TimedOperation(services.loop)
  }

  /// The pids of running commands, which are children of the daemon that nothing else may reap.
  var pids: [Int32] { runs.values.compactMap(\.pid) }

  /// Counts of commands for `status`; nil: no command is configured, and none has been.
  var report: DaemonMeasurements.Hooks? {
    isConfigured || counts != DaemonMeasurements.Hooks() ? counts : nil
  }

  /// Reads which commands are configured. Called when the configuration may have changed.
  func follow() {
    isConfigured =
      !configuration.current.hooks.isEmpty
      || workers.values.contains { !$0.configuration.hooks.isEmpty }
    guard isConfigured else { return chronicle.observe(as: .hooks, nil) }
    chronicle.observe(as: .hooks) { [unowned self] in offer($0, $1) }
  }

  /// Starts the commands for the start of the daemon, and observes events from now on.
  func begin(version: String, socket: String) {
    self.socket = socket
    follow()
    let policy = configuration.current.policy.name
    let notice = Notice(daemonStarted: version, policy: policy, at: EventLoop.now)
    offer(notice, EventRecord(notice, wall: JournalWriter.wall()))
  }

  private func offer(_ notice: Notice, _ record: EventRecord) {
    let (worker, events) = (notice.worker, notice.hookEvents)
    let workerHooks = worker.flatMap { workers[$0]?.configuration.hooks }
    var input: [UInt8]?
    for hooks in [workerHooks, configuration.current.hooks].compactMap(\.self) where !hooks.isEmpty
    {
      for event in Hooks.Event.allCases where events.contains(event) {
        for command in hooks.commands[event] ?? [] {
          let bytes = input ?? Self.json(record)
          input = bytes
          let subject = HookQueue.Subject(event: event, worker: worker?.name)
          add(HookQueue.Entry(subject: subject, command: command, input: bytes, hooks: hooks))
        }
      }
    }
  }

  private static func json(_ record: EventRecord) -> [UInt8] {
    var record = record
    record.text = String(record.text.prefix(maxText))
    // A record that has only texts and finite numbers can always be encoded.
    let line = (try? WireCodec.json(for: JSONDocument(record))) ?? []
    return line + [UInt8(ascii: "\n")]
  }

  // MARK: the queue

  private func add(_ entry: HookQueue.Entry) {
    guard queue.add(entry) else {
      counts.dropped += 1
      return logLossesLater()
    }
    startLater(.zero)
  }

  /// Starts waiting commands after the delay. Even with a delay of zero, the engine's directives
  /// are executed first.
  private func startLater(_ delay: Duration) {
    nextStart.wait(delay) { [unowned self] in startNext() }
  }

  private func startNext() {
    while let entry = queue.next(at: EventLoop.now, running: runs.count) { start(entry) }
    if let next = queue.nextStart(at: EventLoop.now, running: runs.count) {
      startLater(max(.milliseconds(1), next - EventLoop.now))
    }
  }

  private func start(_ entry: HookQueue.Entry) {
    // Each slot has a name of its own for the thread that opens its program: while one program
    // hangs, jobs with the same name are refused.
    let slot = (1...HookQueue.maxRunning).first { runs[$0] == nil } ?? 0
    do throws(SystemCallError) {
      runs[slot] = try HookRun(
        entry, slot: slot, on: services.loop, environment: environment, socket: socket
      ) { [unowned self] outcome, output in didEnd(entry, slot: slot, outcome, output: output) }
    } catch { didEnd(entry, slot: slot, .failed("did not start: \(error)"), output: "") }
  }

  private func didEnd(
    _ entry: HookQueue.Entry, slot: Int, _ outcome: HookRun.Outcome, output: String
  ) {
    runs[slot] = nil
    let outputText = output.isEmpty ? "" : ": \(output)"
    let title = "command for \(entry.subject)"
    switch outcome {
    case .succeeded:
      counts.succeeded += 1
      if !output.isEmpty { services.log(.info, "\(title)\(outputText)") }
    case .failed(let reason):
      counts.failed += 1
      services.log(
        .warning, "\(title) (\(shellText(entry.command))) failed: \(reason)\(outputText)")
    case .timedOut:
      counts.timedOut += 1
      let limit = entry.hooks.timeout.text
      services.log(
        .warning, "\(title) (\(shellText(entry.command))) was ended after \(limit)\(outputText)")
    }
    startLater(.zero)
  }

  // MARK: dropped commands

  /// Logs what was dropped in one line, 5 s after the first of it.
  private func logLossesLater() {
    guard queue.dropped == 1 else { return }
    services.loop.after(.seconds(5)) { [weak self] in
      guard let self else { return }
      services.log(.warning, queue.drainLosses())
    }
  }
}
