import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing
import WorkerProtocol

@testable import Daemon

/// A run of a worker that answers requests over HTTP, and is measured, as a test says.
private final class ShedWorld: ShedHost, QuestionHost {
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
  /// Measurements wait for `measured`.
  var isSlow = false
  private var measurements: [(ByteCount?) -> Void] = []
  private(set) var measurementCount = 0
  var refusal: ShedRefusal?
  private(set) var asked: [ShedChannel] = []
  private(set) var command: Command?
  private(set) var events: [Event] = []
  private(set) var logged: [String] = []

  var watchesTraffic = false
  var hasTraffic = false
  private(set) var questions: [Policy.Probe] = []
  private var respond: ((ProbeRunner.Outcome) -> Void)?
  private(set) var dropped = 0
  private(set) var active = 0
  private(set) var looks = 0
  private(set) var questionsEnded = 0
  let http: ShedOverHTTP
  private let questionHost: Relay

  /// `ShedOverHTTP` keeps its host, and this object keeps that.
  private final class Relay: QuestionHost {
    weak var world: ShedWorld?
    var watchesTraffic: Bool { world?.watchesTraffic ?? false }
    func ask(
      _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
    ) -> () -> Void { world?.ask(probe, then: answer) ?? {} }
    func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
      world?.lookAtTraffic(then: then)
    }
    func wasActive() { world?.wasActive() }
    func questionHasEnded() { world?.questionHasEnded() }
  }

  init(_ timers: FakeTimers = FakeTimers()) {
    self.timers = timers
    questionHost = Relay()
    http = ShedOverHTTP(timers, questionHost)
    questionHost.world = self
  }

  func begin(
    _ channel: WorkerConfiguration.Shed?, _ kind: Directive.ShedKind = .memoryWarning,
    _ conversation: WorkerConversation? = nil
  ) -> ShedAttempt {
    let attempt = ShedAttempt(
      id, kind, until: timers.now + .seconds(5), on: channel, conversation, http, timers, self)
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
  func findTree(then: @escaping (ProcessTree?) -> Void) { then(nil) }
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

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    questions.append(probe)
    respond = answer
    return { [unowned self] in
      respond = nil
      dropped += 1
    }
  }
  func respond(_ outcome: ProbeRunner.Outcome) {
    let waiting = respond
    respond = nil
    waiting?(outcome)
  }
  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    looks += 1
    let found = hasTraffic
    hasTraffic = false
    then(found)
  }
  func wasActive() { active += 1 }
  func questionHasEnded() { questionsEnded += 1 }

  var isAnswered: Bool { events == [.shedAnswered(id)] }
}

@Suite("A request for memory") struct ShedAttemptTests {
  private let world = ShedWorld()
  private let request = Policy.Probe.HTTPRequest(port: 80, path: "/shed")

  @Test("by signal is answered when the footprint has fallen and rests for three looks")
  func signalFalls() {
    let attempt = world.begin(.signal(SIGUSR1))
    #expect(world.asked == [.signal(SIGUSR1)])
    world.timers.advance(by: .milliseconds(100))
    world.footprint = .megabytes(40)
    // The first look sees it move, and the next three see it at rest.
    world.timers.advance(by: .milliseconds(300))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(100))
    #expect(world.isAnswered)
    world.timers.advance(by: .seconds(5))
    #expect(world.isAnswered, "once")
    attempt.finish()
    #expect(
      world.events.last
        == .shedFinished(world.id, before: .megabytes(100), after: .megabytes(40)))
    #expect(world.logged == ["shed \(ByteCount.megabytes(100)) → \(ByteCount.megabytes(40))"])
  }

  @Test("by signal to a worker that gives nothing back is answered after a second")
  func signalRests() {
    let attempt = world.begin(.signal(SIGUSR1))
    defer { attempt.end() }
    world.timers.advance(by: .milliseconds(999))
    #expect(world.events == [])
    world.timers.advance(by: .milliseconds(1))
    #expect(world.isAnswered)
  }

  @Test("is made when the footprint before it is known, and not at all where it has ended by then")
  func measuredFirst() {
    world.isSlow = true
    let attempt = world.begin(.signal(SIGUSR1))
    world.footprint = .megabytes(90)
    #expect(world.asked == [])
    world.measured()
    #expect(world.asked.count == 1)
    attempt.finish()
    world.footprint = .megabytes(80)
    world.measured()
    #expect(
      world.events == [
        .shedFinished(world.id, before: .megabytes(90), after: .megabytes(80))
      ])
    let ended = world.begin(.signal(SIGUSR1))
    ended.end()
    world.measured()
    world.timers.advance(by: .seconds(10))
    #expect(world.asked.count == 1 && world.events.count == 1)
  }

  @Test("that can't be made on any channel counts as answered at once")
  func noChannel() {
    let unasked = world.begin(nil)
    #expect(world.isAnswered && world.logged == [])
    unasked.end()
    world.refusal = .notCaught(signal: SIGUSR1)
    let refused = world.begin(.signal(SIGUSR1))
    #expect(
      world.events.count == 2 && world.logged == ["\(ShedRefusal.notCaught(signal: SIGUSR1))"])
    refused.end()
    world.timers.advance(by: .seconds(10))
    #expect(world.events.count == 2)
  }

  @Test("by a command is watched from the command's end on, which is logged where it failed")
  func command() throws {
    let attempt = world.begin(.command(["free"]))
    let command = try #require(world.command)
    #expect(attempt.commandPid == 4711)
    world.timers.advance(by: .seconds(3))
    #expect(world.events == [] && world.measurementCount == 1)
    command.ended(.ended(.exited(1)))
    #expect(attempt.commandPid == nil)
    #expect(world.logged.count == 1 && world.logged[0].hasPrefix("its shed command failed: "))
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
    attempt.end()
    #expect(!command.isCancelled, "it has ended")
  }

  @Test("ends its command with it, and says what held up the command's start")
  func commandHangs() throws {
    let attempt = world.begin(.command(["free"]))
    let command = try #require(world.command)
    command.hang = "its file system doesn't answer"
    attempt.end()
    attempt.end()
    #expect(command.isCancelled)
    #expect(world.logged == ["its shed command didn't start: its file system doesn't answer"])
    command.ended(.cancelled)
    world.timers.advance(by: .seconds(5))
    #expect(world.events == [])
  }

  // MARK: over HTTP

  @Test("over HTTP is answered by its response")
  func http() throws {
    let attempt = world.begin(.http(request))
    #expect(world.questions.map(\.timeout) == [.seconds(5)])
    #expect(world.http.isAsking)
    world.timers.advance(by: .seconds(2))
    #expect(world.events == [])
    world.respond(.success)
    #expect(world.isAnswered)
    #expect(world.http.isAsking, "the worker may still hold the connection")
    attempt.end()
    world.timers.advance(by: LivenessMonitor.settling)
    #expect(!world.http.isAsking && world.questionsEnded == 1)
    #expect(world.dropped == 0 && world.logged == [])
  }

  @Test("over HTTP that fails is logged, and the footprint watched instead")
  func httpFails() {
    let attempt = world.begin(.http(request))
    defer { attempt.end() }
    world.respond(.failure("status 500"))
    #expect(world.logged == ["its shed request failed: status 500"] && world.events == [])
    world.timers.advance(by: .seconds(1))
    #expect(world.isAnswered)
  }

  @Test("over HTTP is dropped when its time is over")
  func httpOverdue() {
    let attempt = world.begin(.http(request))
    attempt.finish()
    #expect(world.dropped == 1)
    #expect(world.logged.first == "its shed request failed: no answer in time")
    world.respond(.success)
    world.timers.advance(by: .seconds(5))
    #expect(world.events.count == 1 && !world.http.isAsking && world.questionsEnded == 1)
  }

  @Test("over HTTP is no activity: what came before it is, and what comes with it isn't")
  func httpTraffic() {
    world.watchesTraffic = true
    world.hasTraffic = true
    let attempt = world.begin(.http(request))
    defer { attempt.end() }
    #expect(world.active == 1 && world.questions.count == 1)
    world.hasTraffic = true
    world.respond(.success)
    #expect(world.looks == 1)
    world.timers.advance(by: LivenessMonitor.settling)
    #expect(world.looks == 2 && world.active == 1 && !world.http.isSettling)
    #expect(world.questionsEnded == 1)
  }

  // MARK: over the worker's own channels

  private func connected(
    _ body: (ConversationWorld, WorkerConversation, WorkersEnd, ShedWorld) throws -> Void
  ) throws {
    let talk = try ConversationWorld()
    let conversation = try talk.begin()
    defer { conversation.end() }
    let worker = try talk.connect(conversation)
    _ = try worker.hear()
    try body(talk, conversation, worker, ShedWorld(talk.timers))
  }

  @Test("over its socket is answered by `done`, and not by a footprint that rests")
  func socket() throws {
    try connected { talk, conversation, worker, world in
      let attempt = world.begin(nil, .memoryWarning, conversation)
      let asked = try #require(try worker.hear().requests.first)
      #expect(
        asked.request
          == .memoryWarning(level: "warning", footprintBytes: ByteCount.megabytes(100).bytes))
      #expect(asked.seconds == 5)
      talk.timers.advance(by: .seconds(4))
      #expect(world.events == [] && world.measurementCount == 1)
      try worker.say(.done(id: asked.id))
      try talk.watches.serve()
      #expect(world.isAnswered)
      attempt.finish()
      #expect(world.events.count == 2)
    }
  }

  @Test("over its socket names the level that there is, or asks for what the background asks for")
  func kinds() throws {
    try connected { _, conversation, worker, world in
      world.pressure = .critical
      world.begin(nil, .memoryWarning, conversation).end()
      world.begin(nil, .didEnterBackground, conversation).end()
      let asked = try worker.hear().requests.map(\.request)
      #expect(
        asked == [
          .memoryWarning(
            level: "critical", footprintBytes: ByteCount.megabytes(100).bytes),
          .didEnterBackground,
        ])
    }
  }

  @Test("both by command and over its socket is answered when both are done")
  func both() throws {
    for isCommandFirst in [false, true] {
      try connected { talk, conversation, worker, world in
        let attempt = world.begin(.command(["free"]), .memoryWarning, conversation)
        defer { attempt.end() }
        let asked = try #require(try worker.hear().requests.first)
        let command = try #require(world.command)
        if isCommandFirst { command.ended(.ended(.exited(0))) }
        try worker.say(.done(id: asked.id))
        try talk.watches.serve()
        if !isCommandFirst {
          #expect(world.events == [])
          command.ended(.ended(.exited(0)))
        }
        talk.timers.advance(by: .seconds(3))
        #expect(world.isAnswered)
      }
    }
  }

  @Test("isn't missed by the watchdog where all that were asked have hung up")
  func abandoned() throws {
    try connected { talk, conversation, worker, world in
      let attempt = world.begin(nil, .memoryWarning, conversation)
      worker.hangUp()
      try talk.watches.serve()
      #expect(world.events == [])
      attempt.finish()
      #expect(
        world.events == [
          .shedAnswered(world.id),
          .shedFinished(world.id, before: .megabytes(100), after: .megabytes(100)),
        ])
    }
  }

  @Test("isn't answered by a worker whose run has ended")
  func runEnds() throws {
    try connected { talk, conversation, _, world in
      let attempt = world.begin(nil, .memoryWarning, conversation)
      conversation.end()
      attempt.end()
      talk.timers.advance(by: .seconds(10))
      #expect(world.events == [])
    }
  }

  @Test(
    "goes to the listeners at MEMORY_PRESSURE_WATCH, too, and of one that answers itself rest means nothing"
  )
  func listeners() throws {
    try connected { talk, conversation, worker, world in
      worker.hangUp()
      let listener = try UnixSocket.connected(
        to: try #require(conversation.pressurePath), .stream)
      try talk.watches.serve()
      let first = world.begin(.notify, .memoryWarning, conversation)
      #expect(world.asked == [.notify])
      talk.timers.advance(by: .seconds(1))
      #expect(world.isAnswered)
      first.end()
      try talk.notify("X_DORMOUSE_DONE=1", conversation)
      try talk.watches.serve()
      let second = world.begin(nil, .memoryWarning, conversation)
      talk.timers.advance(by: .seconds(10))
      #expect(world.asked == [.notify, .notify] && world.isAnswered)
      second.end()
      withExtendedLifetime(listener) {}
    }
  }
}
