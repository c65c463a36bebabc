import Glibc
import Linux
import Supervision
import TestSupport

@testable import Daemon

/// A worker that is being launched. The test's own process represents its process. Jobs run on
/// another thread. Time passes and outcomes are delivered when a test says so.
final class ReadinessWorld {
  let adapters: AdapterWorld
  let loop = FakeLoop()
  let threads = JobPool.forTest
  let processes = FakeProcesses()
  let questions = FakeQuestions.World()
  var worker: WorkerUnit?
  private let holder: ProcessHolder
  private var begun: [ReadinessWatch] = []

  init() throws {
    adapters = try AdapterWorld()
    // The mailbox of the jobs is the first watch of the loop.
    let jobs = try LoopJobs(loop, threads)
    holder = ProcessHolder(
      loop: loop, jobs: jobs, processes: processes, probes: questions,
      sleeps: adapters.sleeps, ends: adapters.ends)
    let worker = try adapters.add("web", .terminated)
    worker.process = try .forTest()
    self.worker = worker
    adapters.driver.request(.start, worker.id) { _ in }
    adapters.notes.forget()
    try writeLog("")
  }

  private var logPath: String { adapters.scratch.path + "/web.log" }
  func writeLog(_ text: String) throws { try adapters.scratch.write("web.log", text) }

  func watch(
    _ rule: ReadinessRule, _ channel: ReadinessChannel? = nil, log: String? = nil
  ) throws -> ReadinessWatch {
    guard let worker else { throw TestFailure("there is no worker") }
    var plan = LaunchPlan(
      name: "web", command: ["web"], directory: "/", environment: [:], logPath: log ?? logPath)
    plan.readinessChannel = channel
    let process = try WorkerProcess.adopt(
      try ProcessIdentity.current(of: getpid()), plan: plan)
    worker.process = process
    return ReadinessWatch(rule, process, of: adapters.handle(worker), heldBy: holder)
  }

  /// Makes a watch, which stays, and begins it.
  @discardableResult
  func begin(
    _ rule: ReadinessRule, _ channel: ReadinessChannel? = nil, log: String? = nil
  ) throws -> ReadinessWatch {
    let watch = try watch(rule, channel, log: log)
    watch.begin()
    begun.append(watch)
    return watch
  }

  var readies: Int { adapters.notes.events.count { $0 == "ready" } }
  var pending: [Duration] { loop.pending }
  var lines: [String] { adapters.logFile.lines(about: "web") }

  /// Delivers the messages of other threads.
  private func deliverMessages() { loop.fire() }

  /// Delivers the outcome of the running job.
  func deliverOutcome() throws {
    let before = pending
    let isBack = try eventually {
      deliverMessages()
      return pending != before
    }
    if !isBack { throw TestFailure("nothing is looked for") }
  }

  func passUntilReady() throws -> Bool {
    try eventually {
      deliverMessages()
      pass()
      return readies == 1
    }
  }

  func reply(_ outcome: ProbeRunner.Outcome) {
    let waiting = questions.answer
    questions.answer = nil
    waiting?(outcome)
  }

  func pass(_ milliseconds: Int = 50) { loop.advance(by: .milliseconds(milliseconds)) }
}
