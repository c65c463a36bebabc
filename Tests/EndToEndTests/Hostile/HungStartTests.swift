import Control
import Glibc
import Linux
import TestSupport
import Testing

/// The daemon answers even if a worker, its user or a file system blocks a launch or a log.
@Suite("Launches and logs that hang") struct HungStartTests {
  @Test(arguments: ["log_line", "log_pattern"])
  func `A worker that replaces its log with a FIFO doesn't block the daemon`(rule: String) throws {
    let daemon = try TestDaemon(
      """
      workers:
        hostile:
          command: [sh, -c, "rm out.log; mkfifo out.log; touch replaced; exec sleep 600"]
          directory: .
          output: { file: ./out.log }
          readiness: { \(rule): ready }
      """)
    #expect(try eventually { access("\(daemon.scratch.path)/replaced", F_OK) == 0 })
    // The daemon has tried to read the FIFO, and still answers.
    try daemon.waitForLogText("hostile: can't search its log for readiness")
    try daemon.expectAnswers()
    #expect(try daemon.worker("hostile").state == "launching")
    kill(daemon.pid, SIGTERM)
    #expect(try daemon.waitForEnd() == 0)
  }

  /// Stops a child of the daemon before its execve; the child's pid. The daemon starts one each
  /// second.
  private func stopChild(of daemon: TestDaemon) throws -> Int32 {
    let deadline = Deadline(in: .seconds(300))
    while !deadline.hasPassed {
      for pid in children(of: daemon.pid) {
        guard let stat = try? ProcessStat.read(pid), stat.name.hasPrefix("dormouse"),
          !stat.isEnded, kill(pid, SIGSTOP) == 0
        else { continue }
        // Its program may have been executed, and may even have ended, before the signal came.
        let isStoppedOrEnded = try eventually {
          (try? ProcessStat.read(pid)).map { $0.isEnded || $0.state == .stopped } ?? true
        }
        if isStoppedOrEnded, let now = try? ProcessStat.read(pid), now.state == .stopped,
          now.name.hasPrefix("dormouse")
        {
          return pid
        }
        kill(pid, SIGCONT)
      }
    }
    throw TestFailure("no child was stopped before its execve: \(daemon.logText)")
  }

  @Test(.enabled(if: Nightly.runs, "only in make test-all"))
  func `A probe whose child is stopped before execve fails, and doesn't block the daemon`() throws {
    let scratch = try Scratch()
    let directory = try scratch.slowDirectory()
    let daemon = try TestDaemon(
      """
      workers:
        asked:
          command: sleep 600
          directory: \(directory)
          liveness: { exec: { command: ["true"] }, periodSeconds: 1, timeoutSeconds: 1, \
      failureThreshold: 1 }
          restart: { when: "no" }
      """)
    #expect(try eventually { try daemon.worker("asked").pid != nil })
    let pid = try stopChild(of: daemon)
    try daemon.expectAnswers()
    try daemon.waitForLogText("its command has not started yet")
    #expect(daemon.logText.contains("stopped it)"), "\(daemon.logText)")
    // SIGKILL ends what is stopped, and nothing is left of it.
    #expect(try eventually { hasEnded(pid) })
    #expect(try eventually { try daemon.zombies() == [] })
  }

  @Test(.enabled(if: TestMachine.isRoot, "only root can start a worker as another user"))
  func `Another user's worker can't reach the session keyring of the daemon`() throws {
    let name = "dormouse-test-\(getpid())"
    let holder = [TestMachine.python, TestMachine.fixture("session_key.py"), name]
    let trial = try Command(arguments: holder + ["true"]).run(in: try Scratch())
    // Without keyrings (a kernel without them, a container that filters them) there is nothing to
    // inherit.
    guard trial.code == 0 else {
      return notTestedHere("the kernel's keyring can't be used here")
    }
    let script = """
      import ctypes, os, platform, time
      keyctl = 250 if platform.machine() == 'x86_64' else 219
      libc = ctypes.CDLL(None, use_errno=True)
      key = libc.syscall(keyctl, 10, ctypes.c_long(-3), b'user', b'\(name)', 0)
      print('found' if key >= 0 else 'nothing: ' + os.strerror(ctypes.get_errno()), flush=True)
      time.sleep(600)
      """
    let indented = script.split(separator: "\n").map { "          " + $0 }.joined(separator: "\n")
    let daemon = try TestDaemon(
      """
      workers:
        reader:
          command:
            - \(TestMachine.python)
            - -c
            - |
      \(indented)
          user: "65534"
          group: "65534"
          directory: /
          readiness: { log_pattern: "^(found|nothing)" }
      """, wrapper: holder)
    #expect(try eventually { try daemon.worker("reader").state != "launching" })
    let said = daemon.workerLog("reader")
    #expect(said.hasPrefix("nothing: "), "\(said)")
  }

  @Test(
    "Workers and their probes inherit the daemon's oom_score_adj unless the worker sets its own")
  func oomScores() throws {
    let show = "cat /proc/self/oom_score_adj"
    let daemon = try TestDaemon(
      """
      workers:
        usual:
          command: [sh, -c, "\(show); exec sleep 600"]
          liveness: { exec: { command: [sh, -c, "\(show) >probe"] }, periodSeconds: 1 }
        offered:
          command: [sh, -c, "\(show); exec sleep 600"]
          limits: { oom_score_adj: 777 }
      """, wrapper: ["choom", "-n", "300", "--"])
    #expect(try eventually { daemon.workerLog("usual") == "300\n" })
    #expect(try eventually { daemon.workerLog("offered") == "777\n" })
    let probe = "\(daemon.scratch.path)/probe"
    #expect(try eventually { (try? readText(probe)) == "300\n" })
  }
}
