import Control
import Linux
import TestSupport
import Testing

@Suite("`stop_command` under a daemon") struct StopCommandTests {
  /// It ends when a file is there, and by no signal but SIGKILL.
  private static func configuration(_ scratch: Scratch, _ command: String, grace: String) throws
    -> String
  {
    let script = try scratch.write(
      "deaf.py",
      """
      import os, signal, sys, time
      signal.signal(signal.SIGTERM, lambda *_: print("TERM", flush=True))
      print("ready", flush=True)
      while not os.path.exists(sys.argv[1]): time.sleep(0.02)
      sys.exit(7)
      """)
    return """
      policy_overrides: { background: { suspend_after: 1h } }
      workers:
        deaf:
          command: [\(TestMachine.python), \(script), \(scratch.path)/end]
          readiness: { log_line: ready }
          stop_command: [sh, -c, "\(command)"]
          stop_grace: \(grace)

      """
  }

  @Test(
    "A suspended worker is woken for its stop command, which ends it, and gets no signal before")
  func ends() throws {
    let scratch = try Scratch()
    let daemon = try TestDaemon(
      try Self.configuration(
        scratch, "echo stop of $DORMOUSE_WORKER_PID; touch \(scratch.path)/end; sleep 60",
        grace: "60s"))
    #expect(try eventually { try daemon.worker("deaf").state == "foreground" })
    let pid = try #require(try daemon.worker("deaf").pid)
    try daemon.done("suspend", "deaf")
    try daemon.done("stop", "deaf")
    let worker = try daemon.worker("deaf")
    #expect(worker.lastExit?.status == 7 && worker.pid == nil)
    let log = try readText(try #require(worker.log))
    #expect(log.contains("stop of \(pid)\n") && !log.contains("TERM"), "\(log)")
  }
}
