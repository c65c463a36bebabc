import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

@testable import Daemon

/// A run of a worker that is asked for memory: it answers, and is measured, as a test says.
final class ShedWorld: ShedHost {
  final class Command: ShedCommand {
    var pid: Int32? = 4711
    var hang: String?
    var isCancelled = false
    let ended: (SideProgram.Phase) -> Void
    init(_ ended: @escaping (SideProgram.Phase) -> Void) { self.ended = ended }
    func cancel() { isCancelled = true }
  }

  let id = WorkerID("web")
  let timers: FakeTimers
  var footprint = ByteCount.megabytes(100)
  var pressure = PressureLevel.normal
  var isInForeground = false
  /// Measurements wait for `measured`.
  var isSlow = false
  private var measurements: [(ByteCount?) -> Void] = []
  private(set) var measurementCount = 0
  var refusal: ShedRefusal?
  private(set) var asked: [ShedChannel] = []
  private(set) var command: Command?
  private(set) var events: [Event] = []
  private(set) var logged: [String] = []

  /// Over HTTP.
  let questions: FakeQuestions
  let http: ShedOverHTTP

  init(_ timers: FakeTimers = FakeTimers()) throws {
    self.timers = timers
    questions = try FakeQuestions(timers)
    http = ShedOverHTTP(timers, questions.run)
    questions.runtime.shedOverHTTP = http
  }

  func begin(
    _ channel: WorkerConfiguration.Shed?, _ kind: Directive.ShedKind = .memoryWarning,
    _ conversation: WorkerConversation? = nil
  ) -> ShedAttempt {
    let attempt = ShedAttempt(
      id, kind: kind, until: timers.now + .seconds(5), on: channel, conversation: conversation,
      http: http, timers: timers, host: self)
    attempt.begin()
    return attempt
  }

  func measure(then: @escaping (ByteCount?) -> Void) {
    measurementCount += 1
    if isSlow { measurements.append(then) } else { then(footprint) }
  }
  func measured() {
    let all = measurements
    measurements = []
    for each in all { each(footprint) }
  }
  /// The search for its processes doesn't end.
  var isHidden = false
  func findTree(then: @escaping (ProcessTree?) -> Void) { if !isHidden { then(nil) } }
  func ask(
    on channel: ShedChannel, _ tree: ProcessTree?, ended: @escaping (SideProgram.Phase) -> Void
  ) throws(ShedRefusal) -> (any ShedCommand)? {
    if let refusal { throw refusal }
    asked.append(channel)
    guard case .command = channel else { return nil }
    let command = Command(ended)
    self.command = command
    return command
  }
  func send(_ event: Event) { events.append(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { logged.append(text) }

  var isAnswered: Bool { events == [.shedAnswered(id)] }
}
