import Lifecycle
import Policy
import Testing

/// What happens to `web` in one row of the table; the last step's directives are compared.
enum Step: Sendable {
  case event(Event)
  case ask(Request.Verb)
  case pass(Duration)
}

struct Row: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var from: WorkerState
  var steps: [Step]
  var expected: [String]
  var canShed: Bool
  var announcesReadiness: Bool
  var size: ByteCount
  var policy: LifecyclePolicy

  init(
    _ description: String, _ from: WorkerState, _ steps: [Step], _ expected: [String],
    canShed: Bool = false, announces: Bool = false, size: ByteCount = .megabytes(8),
    policy: (inout LifecyclePolicy) -> Void = { _ in }
  ) {
    testDescription = description
    self.from = from
    self.steps = steps
    self.expected = expected
    self.canShed = canShed
    announcesReadiness = announces
    self.size = size
    self.policy = LifecyclePolicy()
    policy(&self.policy)
  }
}

private let asleep = HibernationResult(
  footprintBefore: .megabytes(8), footprintAfter: .kilobytes(4), imageSize: .megabytes(2),
  duration: .milliseconds(48))

private let launching: [Row] = [
  Row(
    "start launches", .terminated, [.ask(.start)],
    ["web: terminated → launching", "launch web"]),
  Row(
    "a worker that announces nothing is ready when launched", .launching,
    [.event(.launched(web))], ["done", "measure web", "web: launching → foreground"]),
  Row(
    "a worker that announces readiness isn't ready yet when launched", .launching,
    [.event(.launched(web))], [], announces: true),
  Row(
    "readiness brings it to the front", .launching,
    [.event(.launched(web)), .event(.ready(web))],
    ["done", "measure web", "web: launching → foreground"], announces: true),
  Row(
    "a failed launch is told", .launching, [.event(.launchFailed(web, "no such file"))],
    ["web: launching → terminated", "failed"]),
  Row(
    "missed readiness terminates", .launching, [.event(.launched(web)), .pass(.seconds(20))],
    ["failed", "web: launching → terminating", "terminate web"], announces: true),
  Row(
    "missed readiness is only reported where the policy says so", .launching,
    [.event(.launched(web)), .pass(.seconds(60))],
    ["failed", "web: launching → launching"], announces: true
  ) { $0.watchdog.onTimeout = .report },
]

private let backgrounding: [Row] = [
  Row(
    "leaving the foreground tells the worker", .foreground, [.ask(.background)],
    ["web: foreground → background", "shed web didEnterBackground", "done"], canShed: true),
  Row(
    "who can't be told is measured", .foreground, [.ask(.background)],
    ["web: foreground → background", "measure web", "done"]),
  Row(
    "idleness sends it back", .foreground, [.pass(.seconds(60))],
    ["web: foreground → background", "measure web"]
  ) {
    $0.foreground.mode = .activity
    $0.background.suspendAfter = nil
  },
  Row(
    "activity brings it forward", .background, [.event(.activity(web))],
    ["web: background → foreground"]
  ) { $0.foreground.mode = .activity },
  Row("activity does nothing where people choose", .background, [.event(.activity(web))], []),
  Row(
    "an answer finishes the shed", .foreground, [.ask(.background), .event(.shedAnswered(web))],
    ["finishShed web"], canShed: true),
  Row(
    "the deadline finishes it too", .foreground, [.ask(.background), .pass(.seconds(5))],
    ["finishShed web"], canShed: true),
]

private let suspending: [Row] = [
  Row(
    "the grace ends in suspension", .background, [.pass(.seconds(10))],
    ["web: background → suspending", "suspend web"]),
  Row(
    "never means never", .background, [.pass(.seconds(36000))], []
  ) { $0.background.suspendAfter = nil },
  Row(
    "nobody is suspended while shedding", .foreground,
    [.ask(.background), .event(.shedAnswered(web)), .pass(.seconds(9))], [], canShed: true
  ) { $0.background.suspendAfter = .seconds(1) },
  Row(
    "a measurement that is lost keeps nobody awake for ever", .foreground,
    [.ask(.background), .event(.shedAnswered(web)), .pass(.seconds(10))],
    ["web: background → suspending", "suspend web"], canShed: true),
  Row(
    "an open task keeps it awake", .background,
    [.event(.taskBegan(web, task: "save", limit: nil)), .pass(.seconds(599))], []),
  Row(
    "the end of the task lets it sleep", .background,
    [
      .event(.taskBegan(web, task: "save", limit: nil)), .pass(.seconds(11)),
      .event(.taskEnded(web, task: "save")),
    ], ["web: background → suspending", "suspend web"]),
  Row(
    "a task out of time is told, and dropped a second later", .background,
    [.event(.taskBegan(web, task: "save", limit: .seconds(15))), .pass(.seconds(16))],
    ["expire web save", "web: background → suspending", "suspend web"]),
  Row(
    "suspended is measured", .suspending, [.event(.suspended(web))],
    ["web: suspending → suspended", "measure web", "done"]),
  Row(
    "a failed suspension leads back", .suspending, [.event(.suspendFailed(web, "a child ran"))],
    ["web: suspending → background", "failed"]),
  Row(
    "and is tried again after the grace", .suspending,
    [.event(.suspendFailed(web, "a child ran")), .pass(.seconds(10))],
    ["web: background → suspending", "suspend web"]),
]

private let hibernating: [Row] = [
  Row(
    "suspended long enough is hibernated", .suspended, [.pass(.seconds(30))],
    ["web: suspended → hibernating", "hibernate web"]),
  Row(
    "too big stays suspended", .suspended, [.pass(.seconds(3600))], [], size: .megabytes(60)),
  Row(
    "too small stays suspended", .suspended, [.pass(.seconds(3600))], [], size: .kilobytes(900)),
  Row(
    "hibernated is answered", .hibernating, [.event(.hibernated(web, asleep))],
    ["web: hibernating → hibernated", "done"]),
  Row(
    "a failed hibernation leaves it suspended", .hibernating,
    [.event(.hibernateFailed(web, "disk full", permanent: false))],
    ["web: hibernating → suspended", "failed"]),
  Row(
    "and is tried again after a while", .hibernating,
    [.event(.hibernateFailed(web, "disk full", permanent: false)), .pass(.seconds(30))],
    ["web: suspended → hibernating", "hibernate web"]),
  Row(
    "unless it can never work", .hibernating,
    [.event(.hibernateFailed(web, "io_uring", permanent: true)), .pass(.seconds(3600))], []),
]

private let waking: [Row] = [
  Row(
    "what waits wakes a suspended worker", .suspended, [.event(.wakeNeeded(web, "a connection"))],
    ["web: suspended → resuming", "resume web"]),
  Row(
    "what waits wakes a hibernated worker", .hibernated,
    [.event(.wakeNeeded(web, "a connection"))], ["web: hibernated → resuming", "resume web"]),
  Row(
    "and it ends in the background", .hibernated,
    [.event(.wakeNeeded(web, "data")), .event(.resumed(web, .milliseconds(9)))],
    ["measure web", "web: resuming → background"]),
  Row(
    "or in front, where activity decides", .hibernated,
    [.event(.wakeNeeded(web, "data")), .event(.resumed(web, .milliseconds(9)))],
    ["measure web", "web: resuming → foreground"]
  ) { $0.foreground.mode = .activity },
  Row(
    "what comes while falling asleep isn't lost", .suspending,
    [.event(.wakeNeeded(web, "data")), .event(.suspended(web))],
    [
      "web: suspending → suspended", "measure web", "done", "web: suspended → resuming",
      "resume web",
    ]),
  Row(
    "a failed resume leaves it as it was", .resuming,
    [.event(.resumeFailed(web, "no memory", intact: true))],
    ["web: resuming → hibernated", "failed"]),
  Row(
    "what waits is tried again", .hibernated,
    [
      .event(.wakeNeeded(web, "data")), .event(.resumeFailed(web, "no memory", intact: true)),
      .pass(.seconds(1)),
    ], ["web: hibernated → resuming", "resume web"]),
  Row(
    "unverified memory never runs", .resuming,
    [.event(.resumeFailed(web, "checksum", intact: false))],
    ["failed", "web: resuming → terminating", "kill web"]),
]

private let ending: [Row] = [
  Row(
    "SIGTERM, grace, SIGKILL", .terminating, [.pass(.seconds(2))], ["kill web"]),
  Row(
    "the end is answered", .terminating, [.event(.exited(web, .exited(0)))],
    ["web: terminating → terminated", "done"]),
  Row(
    "who doesn't die is told of", .terminating, [.pass(.seconds(7))], ["kill web", "failed"]),
  Row(
    "a crash is noticed", .foreground, [.event(.exited(web, .signaled(11)))],
    ["web: foreground → terminated"]),
  Row(
    "a death while resuming is answered", .resuming, [.event(.exited(web, .signaled(9)))],
    ["web: resuming → terminated", "failed"]),
  Row(
    "stopping a hibernated worker resumes it first", .hibernated, [.ask(.stop)],
    ["web: hibernated → resuming", "resume web"]),
  Row(
    "and then lets it save its work", .hibernated,
    [.ask(.stop), .event(.resumed(web, .milliseconds(9)))],
    [
      "measure web", "web: resuming → background", "web: background → terminating",
      "terminate web",
    ]),
  Row(
    "terminating a hibernated worker kills it", .hibernated, [.ask(.terminate)],
    ["web: hibernated → terminating", "kill web"]),
]

@Suite("The life cycle, row by row")
struct LifeCycleTableTests {
  @Test(
    "leads from a state and an event to these directives",
    arguments: launching + backgrounding + suspending + hibernating + waking + ending)
  func row(_ row: Row) {
    var world = World(row.policy)
    world.add(
      web, size: row.size, canShed: row.canShed, announcesReadiness: row.announcesReadiness)
    world.bring(web, to: row.from)
    #expect(world.state(web) == row.from)
    var last: [Directive] = []
    for step in row.steps {
      last =
        switch step {
        case .event(let event): world.send(event)
        case .ask(let verb): world.ask(verb, web)
        case .pass(let time): world.pass(time)
        }
    }
    #expect(last.brief == row.expected)
  }
}
