import Control
import Glibc
import Linux
import TestSupport
import Testing

/// `hostile.py` changes what the daemon reads of it all the time.
@Suite("A worker that damages whatever the daemon reads of it") struct HostileWorkerTests {
  @Test(
    "A worker of the daemon's own user stops neither the daemon nor another worker",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func ofSameUser(setting: Setting) throws {
    _ = try attack(setting: setting, user: "")
  }

  @Test(
    "A worker of another user stops neither root's daemon nor another worker, and can't control it",
    .enabled(if: geteuid() == 0, "only root can start a worker as another user"),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func ofAnotherUser(setting: Setting) throws {
    let user = "\(TestMachine.unprivilegedUser)"
    let daemon = try attack(setting: setting, user: "user: \"\(user)\"\n    group: \"\(user)\"")
    #expect(try log(daemon).contains("round refused"))
  }

  private func log(_ daemon: TestDaemon) throws -> String { try daemon.done("logs", "hostile") }

  private func attack(setting: Setting, user: String) throws -> TestDaemon {
    // Its text is the argument: another user may not be able to read the repository.
    let program = try readText(TestMachine.fixture("hostile.py"))
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { "              \($0)" }.joined(separator: "\n")
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h, shed_deadline: 60s }
        hibernate: { after: never, cooldown: 0s }
      workers:
        good: { command: sleep 637 }
        hostile:
          autostart: false
          readiness: { notify: true }
          directory: /
          \(user)
          command:
            - \(TestMachine.python)
            - -c
            - |
      \(program)
            - "637"

      """, setting: setting)
    try daemon.wait("good", toBe: "foreground")
    // Another user reaches its own sockets.
    chmod(daemon.scratch.path, 0o711)
    let good = try #require(try daemon.worker("good").pid)
    var afterFirst = 0
    for round in 1...2 {
      try daemon.done("start", "hostile")
      for verb in ["warn", "background", "suspend", "hibernate", "wake"] {
        // What comes of it is open: the daemon may refuse to hibernate the worker.
        _ = try daemon.verb(verb, "hostile")
        try daemon.done("status", "hostile")
      }
      // The other worker is as it was, and can be used.
      #expect(try daemon.worker("good").pid == good)
      try daemon.done("hibernate", "good")
      try daemon.done("foreground", "good")
      #expect(try daemon.worker("good").tasks.isEmpty)
      #expect(try daemon.ask(.ps).daemon?.pid == daemon.pid)
      try daemon.done("stop", "hostile")
      if round == 1 { afterFirst = try daemon.descriptorCount() }
    }
    // It has sent some thousand descriptors a round.
    let isClosed = try eventually { try daemon.descriptorCount() <= afterFirst + 20 }
    #expect(isClosed, "\(daemon.logText)")
    #expect(try eventually { try daemon.zombies().isEmpty })
    return daemon
  }
}
