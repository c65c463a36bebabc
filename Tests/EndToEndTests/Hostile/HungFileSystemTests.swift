import Control
import Glibc
import Linux
import TestSupport
import Testing

/// A file system, or the name service, doesn't answer. In these builds the daemon aborts when its
/// event loop is blocked for too long (`TurnCheck`).
@Suite("File systems that hang", .serialized) struct HungFileSystemTests {
  @Test(
    "While the image disk hangs, the daemon suspends, wakes and ends workers but hibernates none",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"))
  func images() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { enabled: true, after: never, cooldown: 0s }
      workers: { a: { command: sleep 680 }, b: { command: sleep 681 } }
      """)
    try daemon.wait("b", toBe: "foreground")
    try daemon.wait("a", toBe: "background")
    let hung = try HungFileSystem(over: "\(daemon.state)/images")
    defer { hung.end() }
    try daemon.done("suspend", "a")
    try daemon.waitForLogText("the image disk does not respond")
    try daemon.expectAnswers()
    let refused = try daemon.verb("hibernate", "a")
    #expect(refused.code != 0, "\(refused)")
    try daemon.expectAnswers()
    try daemon.done("wake", "a")
    try daemon.done("stop", "b")
    try daemon.done("start", "b")
    try daemon.expectAnswers()
    hung.end()
    // The next check finds that the disk works again.
    try daemon.done("suspend", "a")
    #expect(
      try eventually {
        if daemon.logText.contains("the image disk responds again") { return true }
        _ = try daemon.verb("hibernate", "a")
        return false
      }, "\(daemon.logText)")
    #expect(try eventually { try daemon.verb("hibernate", "a").code == 0 }, "\(daemon.logText)")
  }

  @Test(
    "A reload fails while the configuration's file system hangs, and a later reload succeeds",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"))
  func configuration() throws {
    let daemon = try TestDaemon("workers: { a: { command: sleep 682 } }\n")
    try daemon.wait("a", toBe: "foreground")
    let directory = "\(daemon.scratch.path)/conf.d"
    #expect(mkdir(directory, 0o700) == 0)
    let hung = try HungFileSystem(over: directory)
    defer { hung.end() }
    kill(daemon.pid, SIGHUP)
    try daemon.expectAnswers()
    try daemon.waitForLogText(
      "reload: nothing changed: reading the configuration took longer than 10 s")
    // A second reload isn't attempted while the first one hangs.
    let again = try daemon.verb("reload")
    #expect(again.code != 0 && again.error.contains("took longer than 10 s"), "\(again)")
    try daemon.expectAnswers()
    hung.end()
    #expect(try eventually { try daemon.verb("reload").code == 0 }, "\(daemon.logText)")
  }

  @Test(
    "The daemon starts while the file system of a worker's env_file hangs, and launches the others",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"))
  func variables() throws {
    let scratch = try Scratch()
    let hung = try HungFileSystem(over: scratch.path)
    defer { hung.end() }
    let daemon = try TestDaemon(
      """
      workers:
        ours: { command: sleep 686 }
        waits: { command: sleep 687, env_file: \(scratch.path)/env }
      """)
    try daemon.wait("ours", toBe: "foreground")
    try daemon.waitForLogText("its file system doesn't answer")
    try daemon.expectAnswers()
    try daemon.waitForLogText("can't open its program and log within 10 s")
    #expect(try daemon.worker("waits").pid == nil)
    // The daemon's threads end with the mount.
    hung.end()
  }

  /// Such a thread keeps the daemon's descriptors open, and with them the locks and the socket.
  @Test(
    "The next daemon starts and keeps the worker of a killed one whose thread hangs",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"),
    .enabled(
      if: (try? Descriptor.pidfd(ofThread: getpid())) != nil,  // Older kernels refuse it.
      "descriptors of a thread are copied since Linux 6.9"))
  func killedDaemon() throws {
    let scratch = try Scratch()
    let hung = try HungFileSystem(over: scratch.path)
    defer { hung.end() }
    let daemon = try TestDaemon(
      """
      workers:
        ours: { command: sleep 688 }
        waits: { command: sleep 689, env_file: \(scratch.path)/env }
      """)
    try daemon.wait("ours", toBe: "foreground")
    try daemon.waitForLogText("its file system doesn't answer")
    try daemon.waitForRecord(of: "ours")
    let worker = try daemon.worker("ours").pid
    let killed = try #require(daemon.process)
    kill(killed.pid, SIGKILL)
    try daemon.start()
    #expect(try daemon.worker("ours").pid == worker, "\(daemon.logText)")
    let hasEnded = try pollDescriptor(killed.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
    #expect(!hasEnded, "no thread of the killed daemon hangs")
    hung.end()
    try killed.wait(.seconds(60))
  }

  @Test(
    "A child that hangs while it enters its directory doesn't keep the locks of its parent",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"))
  func child() throws {
    let scratch = try Scratch()
    try makeDirectory("\(scratch.path)/hung", mode: 0o755)
    let hung = try HungFileSystem(over: "\(scratch.path)/hung")
    defer { hung.end() }
    func lock() throws -> Descriptor? {
      let file = try Descriptor.open("\(scratch.path)/lock", O_RDWR | O_CREAT, mode: 0o600)
      return flock(file.raw, LOCK_EX | LOCK_NB) == 0 ? file : nil
    }
    var locked = try lock()
    try #require(locked != nil)
    let child = try StartingProcess(
      SpawnRequest(
        path: "/bin/true", arguments: ["true"], environment: [:],
        directory: "\(scratch.path)/hung/directory", input: 0, output: 1, error: 2))
    defer {
      hung.end()
      child.abandon()
      waitForChild(child.process.pid)
    }
    func hangs() throws -> Bool {
      let state = try ProcessStat.read(child.process.pid).state
      return child.hangError(after: .zero)?.step == .directory
        && (state == .sleeping || state == .uninterruptible)
    }
    #expect(try eventually { try hangs() })
    locked = nil
    // For a moment, a child that another test starts may have a copy of the descriptor.
    #expect(try eventually { try lock() != nil })
    #expect(try hangs())
  }

  /// The kernel's counters of a TCP connection are read under its socket's lock.
  @Test(
    "The daemon answers while a worker holds the lock of a socket whose traffic is measured",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func lockedSocket(setting: Setting) throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { foreground: { mode: activity, idle_after: 1h } }
      workers:
        locks:
          command: [\(TestMachine.python), \(TestMachine.fixture("locked_socket.py"))]
          readiness: { log_pattern: "^(locked|can't)" }
        other: { command: sleep 685 }
      """, setting: setting)
    try daemon.waitUntilRuns("locks")
    // Where userfaultfd(2) is refused, no program can hold the lock.
    guard daemon.workerLog("locks") == "locked\n" else { return }
    // It still answers after several measurements.
    let end = ContinuousClock.now + .seconds(4)
    while ContinuousClock.now < end {
      try daemon.expectAnswers()
      usleep(200_000)
    }
    try daemon.done("restart", "other")
    try daemon.done("terminate", "locks")
  }

  @Test(
    "While the name service hangs, a worker of another user isn't launched, and other workers are",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights"))
  func nameService() throws {
    let daemon = try TestDaemon(
      """
      workers:
        other: { command: sleep 683, user: "65534", directory: / }
        ours: { command: sleep 684 }
      """,
      wrapper: [
        "unshare", "--mount", "sh", "-c",
        "mkfifo passwd && mount --bind passwd /etc/passwd && exec \"$0\" \"$@\"",
      ])
    try daemon.wait("ours", toBe: "foreground")
    try daemon.expectAnswers()
    #expect(try daemon.worker("other").state == "launching")
    try daemon.waitForLogText("can't look up user 65534 within 10 s")
    try daemon.expectAnswers()
    #expect(try daemon.worker("other").pid == nil)
  }

  /// The thread that waits for all pagers at rest asks this of each worker.
  @Test(
    "Whether a process has memory is known although it waits with its memory locked",
    .enabled(if: HungFileSystem.isPossible, "mounting takes root's rights and /dev/fuse"))
  func lockedMemory() throws {
    let scratch = try Scratch()
    try makeDirectory("\(scratch.path)/hung", mode: 0o755)
    let hung = try HungFileSystem(over: "\(scratch.path)/hung", maps: true)
    defer { hung.end() }
    let process = try Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("locked_memory.py"), "\(scratch.path)/hung/file",
      ]
    ).start(output: "\(scratch.path)/out", error: "\(scratch.path)/out")
    defer { kill(process.pid, SIGKILL) }
    let pages = try PageMap(pid: process.pid)
    let isLocked = try eventually {
      try ProcessStat.read(process.pid).state == .uninterruptible
    }
    try #require(isLocked)
    let answer = Semaphore()
    let isStarted = Thread.start(name: "test") { if pages.hasMemory { answer.signal() } }
    #expect(isStarted)
    #expect(answer.wait(within: .seconds(60)))
    hung.end()
    kill(process.pid, SIGKILL)
    try process.wait(.seconds(60))
    #expect(!pages.hasMemory)
  }
}
