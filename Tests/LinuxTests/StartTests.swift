import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("The way from fork to execve") struct StartTests {
  private static func report(_ step: Int32, _ code: Int32) -> [UInt8] {
    [step, code].flatMap { word in withUnsafeBytes(of: word) { Array($0) } }
  }

  @Test(
    "In a start report, an end of file means success, and a step with a number means its failure")
  func reports() {
    #expect(StartOutcome(report: []) == .executed)
    #expect(
      StartOutcome(report: Self.report(SpawnError.Step.directory.rawValue, ENOENT))
        == .failed(.directory, code: ENOENT, limit: 0))
    #expect(
      StartOutcome(report: Self.report(SpawnError.Step.limit.rawValue | 3 << 8, EPERM))
        == .failed(.limit, code: EPERM, limit: 3))
  }

  private static func request(in directory: String = "/") -> SpawnRequest {
    SpawnRequest(
      path: "/bin/sleep", arguments: ["sleep", "60"], environment: [:], directory: directory,
      input: STDIN_FILENO, output: STDOUT_FILENO, error: STDERR_FILENO)
  }

  private func becomesReadable(_ descriptor: Descriptor) throws -> Bool {
    try pollDescriptor(descriptor.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
  }

  private func end(_ child: StartingProcess) {
    child.abandon()
    waitForChild(child.process.pid)
  }

  /// Makes a child that was stopped before its execve.
  private func stoppedChild(_ directory: String) throws -> StartingProcess {
    for _ in 0..<200 {
      let child = try StartingProcess(Self.request(in: directory))
      kill(child.process.pid, SIGSTOP)
      let isStopped = try eventually { try ProcessStat.read(child.process.pid).state == .stopped }
      if isStopped, try child.poll() == nil { return child }
      end(child)
    }
    throw TestFailure("no child was stopped before its execve")
  }

  @Test("A child that is stopped before its execve blocks no caller and is killed at its deadline")
  func stopped() throws {
    let scratch = try Scratch()
    defer { withExtendedLifetime(scratch) {} }
    let child = try stoppedChild(scratch.slowDirectory())
    // The result stays the same, however often it is requested.
    for _ in 0..<100 { #expect(try child.poll() == nil) }
    let error = #expect(throws: SpawnError.self) { try child.expire(after: .seconds(10)) }
    #expect(error?.isHang == true)
    let message = error?.description ?? ""
    #expect(message.contains("did not start within 10 s"), "\(message)")
    #expect(message.contains("another process stopped it"), "\(message)")
    #expect(try becomesReadable(child.process.pidfd))
    child.process.reapIfEnded()
  }

  @Test func `A child that is stopped and continued executes its program`() throws {
    let scratch = try Scratch()
    defer { withExtendedLifetime(scratch) {} }
    let child = try stoppedChild(scratch.slowDirectory())
    kill(child.process.pid, SIGCONT)
    #expect(try becomesReadable(child.report))
    #expect(try child.poll()?.pid == child.process.pid)
    end(child)
  }

  private func waiting() -> SpawnRequest {
    var request = Self.request()
    request.waitsForRelease = true
    return request
  }

  /// Makes a child that waits for its release.
  private func waitingChild(_ request: SpawnRequest) throws -> (ForkedChild, StartingProcess) {
    let forked = try ForkThread.shared.fork(request)
    let child = StartingProcess(forked)
    let isWaiting = try eventually {
      try forked.step == SpawnError.Step.exec.rawValue
        && ProcessStat.read(child.process.pid).state == .sleeping
    }
    #expect(isWaiting)
    return (forked, child)
  }

  @Test("A child that waits for its release executes its program after that, and not before")
  func released() throws {
    let (forked, child) = try waitingChild(waiting())
    #expect(try child.poll() == nil)
    forked.release()
    #expect(try becomesReadable(child.report))
    #expect(try child.poll()?.pid == child.process.pid)
    forked.release()
    end(child)
  }

  /// A child that kept other descriptors open would delay the end of a client's connection, and
  /// keep a worker's memory registered with a userfaultfd that its owner has closed.
  @Test func `A child that waits for its release keeps open only what its program gets`() throws {
    var request = waiting()
    var terms = SpawnTerms()
    terms.placed = [SpawnTerms.Placed(STDIN_FILENO, at: 7)]
    request.terms = terms
    let (forked, child) = try waitingChild(request)
    let open = try listDirectory("/proc/\(child.process.pid)/fd").compactMap { Int32($0) }
    // The fourth descriptor is the child's end of the report pipe.
    #expect(open.count == 5 && Set([0, 1, 2, 7]).isSubset(of: open), "\(open)")
    forked.release()
    end(child)
  }

  @Test("A child that waits for its release ends with the thread that forked it, and runs nothing")
  func ends() throws {
    var queue: WorkQueue? = WorkQueue(name: "forks")
    let request = waiting()
    let forked = try #require(queue).perform {
      Result { () throws(SpawnError) in try ForkedChild(request) }
    }
    let born = try forked.get()
    let child = StartingProcess(born)
    // A child that began later wouldn't notice that its thread has ended: the process lives on.
    try #require(try eventually { born.step == SpawnError.Step.exec.rawValue })
    queue = nil
    #expect(try becomesReadable(child.process.pidfd))
    kill(child.process.pid, SIGKILL)
    waitForChild(child.process.pid)
  }

  @Test func `A child that another thread has forked and that isn't claimed is killed`() throws {
    let request = Self.request()
    let forked = try ForkThread.shared.fork(request)
    #expect(ForkedChild.anyIsUnclaimed)
    // While other tests' children are reaped, the kernel's list may leave some out.
    #expect(try eventually { children(of: getpid()).contains(forked.process.pid) })
    let watched = StartingProcess(forked)
    let lost: SpawnedProcess
    do { lost = try ForkThread.shared.fork(request).process }
    #expect(try becomesReadable(lost.pidfd))
    waitForChild(lost.pid)
    // The other child executed its program.
    #expect(try becomesReadable(watched.report))
    #expect(try watched.poll()?.pid == forked.process.pid)
    end(watched)
  }

  @Test
  func `Workers of a daemon with a negative oom_score_adj get 0, and inherit a positive value`() {
    #expect(OOMScore.ofWorkers(daemon: -900) == 0)
    #expect(OOMScore.ofWorkers(daemon: 0) == 0)
    #expect(OOMScore.ofWorkers(daemon: 200) == 200)
  }

  @Test func `A process has the oom_score_adj that it is started with`() throws {
    let expected = try readText("/proc/self/oom_score_adj")
    let show = "cat /proc/self/oom_score_adj"
    #expect(try output(of: show, oomScore: .kept) == expected)
    #expect(try output(of: show, oomScore: .value(777)) == "777\n")
  }
}
