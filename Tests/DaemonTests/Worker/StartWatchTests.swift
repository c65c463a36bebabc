import Glibc
import Linux
import Supervision
import Testing

@testable import Daemon

@Suite("A child between fork and execve") struct StartWatchTests {
  /// A child that gets as far as a test says.
  private final class Child: StartingWorker {
    let report: Descriptor
    let pid: Int32 = 4711
    var outcome: Result<WorkerProcess, LaunchError>?
    private(set) var calls: [String] = []

    init() throws { report = try EventCounter().descriptor }

    func poll() throws(LaunchError) -> WorkerProcess? {
      calls.append("look")
      return try outcome?.get()
    }
    func expire() throws(LaunchError) -> WorkerProcess? {
      calls.append("expire")
      if let outcome { return try outcome.get() }
      throw .stuck("it hangs")
    }
    func abandon() { calls.append("abandon") }
  }

  private let loop = FakeLoop()
  private let child: Child
  private let watch: StartWatch
  private let heard = Heard()

  private final class Heard {
    var outcomes: [Result<WorkerProcess, LaunchError>] = []
    var failures: [String] {
      outcomes.compactMap { if case .failure(let error) = $0 { error.reason } else { nil } }
    }
  }

  init() throws {
    child = try Child()
    watch = StartWatch(loop)
  }

  private func begin() {
    watch.begin(child, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
  }

  /// Whether the watch has no descriptor, no timer and no child any more.
  private var isOver: Bool {
    loop.watched.isEmpty && loop.timers.pending.isEmpty && watch.pid == nil
  }

  @Test(
    "A child whose program runs is reported once, and what it has reported so far is no outcome")
  func runs() throws {
    begin()
    #expect(watch.pid == 4711 && heard.outcomes.isEmpty)
    loop.fire()
    #expect(child.calls == ["look"] && heard.outcomes.isEmpty && loop.watched.count == 1)
    let process = try WorkerProcess.forTest()
    child.outcome = .success(process)
    loop.fire()
    #expect(heard.outcomes.count == 1 && isOver)
    if case .success(let reported)? = heard.outcomes.first { #expect(reported === process) }
    loop.timers.advance(by: .seconds(60))
    watch.abandon()
    #expect(
      heard.outcomes.count == 1 && child.calls == ["look", "look"], "it isn't ended any more")
  }

  @Test func `A child that can't execute its program is reported with the reason`() {
    begin()
    child.outcome = .failure(.notFound("serve", path: "/bin"))
    loop.fire()
    #expect(heard.failures == ["serve: not found in its PATH, /bin"] && isOver)
  }

  @Test("At the deadline a child that hangs is given up, and one that runs by then is a worker")
  func deadline() throws {
    begin()
    loop.timers.advance(by: .seconds(9))
    #expect(heard.outcomes.isEmpty)
    loop.timers.advance(by: .seconds(1))
    #expect(heard.failures == ["it hangs"] && child.calls == ["expire"] && isOver)

    let late = try Child()
    late.outcome = .success(try .forTest())
    watch.begin(late, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
    loop.timers.advance(by: .seconds(10))
    #expect(heard.outcomes.count == 2 && heard.failures.count == 1 && isOver)
  }

  @Test func `A child that isn't wanted any more is killed, and nothing is reported of it`() {
    begin()
    watch.abandon()
    watch.abandon()
    loop.timers.advance(by: .seconds(60))
    #expect(child.calls == ["abandon"] && heard.outcomes.isEmpty && isOver)
  }

  @Test func `A child that can't be watched is killed, and reported at once`() {
    loop.watches.refusal = ENOSPC
    begin()
    #expect(child.calls == ["abandon"] && isOver)
    #expect(heard.failures.count == 1 && heard.failures[0].hasPrefix("can't watch its start: "))
  }

  @Test func `The callback of a start may begin the next one`() throws {
    let second = try Child()
    second.outcome = .failure(.noCommand)
    watch.begin(child, within: .seconds(10)) { [heard, watch] in
      heard.outcomes.append($0)
      watch.begin(second, within: .seconds(10)) { [heard] in heard.outcomes.append($0) }
    }
    child.outcome = .failure(.stuck("first"))
    loop.fire()
    #expect(heard.failures == ["first"] && loop.watched.count == 1 && watch.pid == 4711)
    loop.fire()
    #expect(heard.failures == ["first", "its command is empty"] && isOver)
  }
}
