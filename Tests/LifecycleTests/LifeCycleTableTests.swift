import Lifecycle
import Policy
import Testing

/// What happens to `web` in one row of the table. The last step's directives are compared.
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
    "The verb start launches the worker", .terminated, [.ask(.start)],
    ["web: terminated → launching", "launch web"]),
  Row(
    "A worker that announces nothing is ready when launched", .launching,
    [.event(.launched(web))], ["done", "measure web", "web: launching → foreground"]),
  Row(
    "A worker that announces readiness isn't ready yet when launched", .launching,
    [.event(.launched(web))], [], announces: true),
  Row(
    "Readiness brings a launching worker to the foreground", .launching,
    [.event(.launched(web)), .event(.ready(web))],
    ["done", "measure web", "web: launching → foreground"], announces: true),
  Row(
    "A failed launch is reported", .launching, [.event(.launchFailed(web, "no such file"))],
    ["web: launching → terminated", "failed"]),
  Row(
    "A missed readiness deadline is only reported if the policy says so", .launching,
    [.event(.launched(web)), .pass(.seconds(60))],
    ["failed", "web: launching → launching"], announces: true
  ) { $0.watchdog.onTimeout = .report },
]

private let backgrounding: [Row] = [
  Row(
    "A worker that leaves the foreground gets a message", .foreground, [.ask(.background)],
    ["web: foreground → background", "shed web didEnterBackground", "done"], canShed: true),
  Row(
    "A worker that can't get messages is measured when it leaves the foreground", .foreground,
    [.ask(.background)],
    ["web: foreground → background", "measure web", "done"]),
  Row(
    "An idle foreground worker moves to the background", .foreground, [.pass(.seconds(60))],
    ["web: foreground → background", "measure web"]
  ) {
    $0.foreground.mode = .activity
    $0.background.suspendAfter = nil
  },
  Row(
    "Activity brings a background worker to the foreground", .background, [.event(.activity(web))],
    ["web: background → foreground"]
  ) { $0.foreground.mode = .activity },
  Row(
    "Activity does nothing if the operator chooses the foreground", .background,
    [.event(.activity(web))], []),
  Row(
    "An answer finishes the shed", .foreground, [.ask(.background), .event(.shedAnswered(web))],
    ["finishShed web"], canShed: true),
  Row(
    "The deadline finishes a shed without an answer", .foreground,
    [.ask(.background), .pass(.seconds(5))],
    ["finishShed web"], canShed: true),
]

private let suspending: [Row] = [
  Row(
    "A worker is suspended when its grace has passed", .background, [.pass(.seconds(10))],
    ["web: background → suspending", "suspend web"]),
  Row(
    "A worker is never suspended if suspend_after is never", .background, [.pass(.seconds(36000))],
    []
  ) { $0.background.suspendAfter = nil },
  Row(
    "A worker isn't suspended while it sheds", .foreground,
    [.ask(.background), .event(.shedAnswered(web)), .pass(.seconds(9))], [], canShed: true
  ) { $0.background.suspendAfter = .seconds(1) },
  Row(
    "A lost measurement doesn't keep a worker awake for ever", .foreground,
    [.ask(.background), .event(.shedAnswered(web)), .pass(.seconds(10))],
    ["web: background → suspending", "suspend web"], canShed: true),
  Row(
    "An open task keeps a worker awake", .background,
    [.event(.taskBegan(web, task: "save", limit: nil)), .pass(.seconds(599))], []),
  Row(
    "A worker is suspended when its task ends", .background,
    [
      .event(.taskBegan(web, task: "save", limit: nil)), .pass(.seconds(11)),
      .event(.taskEnded(web, task: "save")),
    ], ["web: background → suspending", "suspend web"]),
  Row(
    "A worker gets a message when its task is out of time, and the task is dropped a second later",
    .background,
    [.event(.taskBegan(web, task: "save", limit: .seconds(15))), .pass(.seconds(16))],
    ["expire web save", "web: background → suspending", "suspend web"]),
  Row(
    "A suspended worker is measured", .suspending, [.event(.suspended(web))],
    ["web: suspending → suspended", "measure web", "done"]),
  Row(
    "A failed suspension leads back to the background", .suspending,
    [.event(.suspendFailed(web, "a child ran"))],
    ["web: suspending → background", "failed"]),
  Row(
    "A failed suspension is tried again after the grace", .suspending,
    [.event(.suspendFailed(web, "a child ran")), .pass(.seconds(10))],
    ["web: background → suspending", "suspend web"]),
  Row(
    "A suspension that has failed twice isn't tried again before twice the grace", .suspending,
    [
      .event(.suspendFailed(web, "a child ran")), .pass(.seconds(10)),
      .event(.suspendFailed(web, "a child ran")), .pass(.seconds(19)),
    ], []),
  Row(
    "It is tried again after twice the grace", .suspending,
    [
      .event(.suspendFailed(web, "a child ran")), .pass(.seconds(10)),
      .event(.suspendFailed(web, "a child ran")), .pass(.seconds(20)),
    ], ["web: background → suspending", "suspend web"]),
]

private let hibernating: [Row] = [
  Row(
    "A worker that is suspended long enough is hibernated", .suspended, [.pass(.seconds(30))],
    ["web: suspended → hibernating", "hibernate web"]),
  Row(
    "A worker that is too small stays suspended", .suspended, [.pass(.seconds(3600))], [],
    size: .kilobytes(900)),
  Row(
    "A hibernation is answered when it is done", .hibernating, [.event(.hibernated(web, asleep))],
    ["web: hibernating → hibernated", "done"]),
  Row(
    "A failed hibernation leaves the worker suspended", .hibernating,
    [.event(.hibernateFailed(web, "disk full", permanent: false))],
    ["web: hibernating → suspended", "failed"]),
  Row(
    "A failed hibernation is tried again after a while", .hibernating,
    [.event(.hibernateFailed(web, "disk full", permanent: false)), .pass(.seconds(30))],
    ["web: suspended → hibernating", "hibernate web"]),
  Row(
    "A hibernation that can never work isn't tried again", .hibernating,
    [.event(.hibernateFailed(web, "io_uring", permanent: true)), .pass(.seconds(3600))], []),
]

private let waking: [Row] = [
  Row(
    "A waiting connection wakes a suspended worker", .suspended,
    [.event(.wakeNeeded(web, "a connection"))],
    ["web: suspended → resuming", "resume web"]),
  Row(
    "A waiting connection wakes a hibernated worker", .hibernated,
    [.event(.wakeNeeded(web, "a connection"))], ["web: hibernated → resuming", "resume web"]),
  Row(
    "A wake that no person requested ends in the background", .hibernated,
    [.event(.wakeNeeded(web, "data")), .event(.resumed(web, .milliseconds(9)))],
    ["measure web", "web: resuming → background"]),
  Row(
    "A wake by data ends in the foreground if activity decides", .hibernated,
    [.event(.wakeNeeded(web, "data")), .event(.resumed(web, .milliseconds(9)))],
    ["measure web", "web: resuming → foreground"]
  ) { $0.foreground.mode = .activity },
  Row(
    "Data that arrives during a suspension wakes the worker afterwards", .suspending,
    [.event(.wakeNeeded(web, "data")), .event(.suspended(web))],
    [
      "web: suspending → suspended", "measure web", "done", "web: suspended → resuming",
      "resume web",
    ]),
  Row(
    "A failed resume leaves the worker hibernated", .resuming,
    [.event(.resumeFailed(web, "no memory", intact: true))],
    ["web: resuming → hibernated", "failed"]),
  Row(
    "A failed wake for waiting data is tried again", .hibernated,
    [
      .event(.wakeNeeded(web, "data")), .event(.resumeFailed(web, "no memory", intact: true)),
      .pass(.seconds(1)),
    ], ["web: hibernated → resuming", "resume web"]),
  Row(
    "A worker whose memory isn't verified is killed and never runs", .resuming,
    [.event(.resumeFailed(web, "checksum", intact: false))],
    ["failed", "web: resuming → terminating", "kill web"]),
]

private let ending: [Row] = [
  Row(
    "A worker that ignores SIGTERM gets SIGKILL after its grace", .terminating,
    [.pass(.seconds(2))], ["kill web"]),
  Row(
    "A termination is answered when the worker has ended", .terminating,
    [.event(.exited(web, .exited(0)))],
    ["web: terminating → terminated", "done"]),
  Row(
    "A worker that doesn't die is reported", .terminating, [.pass(.seconds(7))],
    ["kill web", "failed"]),
  Row(
    "A crash moves the worker to terminated", .foreground, [.event(.exited(web, .signaled(11)))],
    ["web: foreground → terminated"]),
  Row(
    "A request to resume is answered if the worker dies meanwhile", .resuming,
    [.event(.exited(web, .signaled(9)))],
    ["web: resuming → terminated", "failed"]),
  Row(
    "Stopping a hibernated worker resumes it first", .hibernated, [.ask(.stop)],
    ["web: hibernated → resuming", "resume web"]),
  Row(
    "A hibernated worker that is stopped gets its stop signal after the resume", .hibernated,
    [.ask(.stop), .event(.resumed(web, .milliseconds(9)))],
    [
      "measure web", "web: resuming → background", "web: background → terminating",
      "terminate web",
    ]),
  Row(
    "Terminating a hibernated worker kills it", .hibernated, [.ask(.terminate)],
    ["web: hibernated → terminating", "kill web"]),
]

@Suite("The life cycle, row by row")
struct LifeCycleTableTests {
  @Test(arguments: launching + backgrounding + suspending + hibernating + waking + ending)
  func `The events of each row lead from its state to its directives`(_ row: Row) {
    var world = World(row.policy)
    world.add(
      web, size: row.size, canShed: row.canShed, announcesReadiness: row.announcesReadiness,
      in: row.from)
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
