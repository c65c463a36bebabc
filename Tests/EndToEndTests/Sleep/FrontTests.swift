import Control
import Glibc
import TestSupport
import Testing

@Suite("The worker in the foreground") struct FrontTests {
  private static let configuration = """
    policy_overrides: { background: { suspend_after: 1h } }
    workers:
      back: { command: sleep 670, restart: { when: always, backoff: { initial: 100ms } } }
      front: { command: sleep 671, restart: { when: always, backoff: { initial: 100ms } } }

    """

  @Test(
    "The foreground worker stays in front when a policy or a verb restarts another worker"
  )
  func stays() throws {
    let daemon = try TestDaemon(Self.configuration)
    // Both are launched at once, and the last one of the configuration takes the foreground.
    #expect(
      try eventually { try ["front", "back"].allSatisfy { try daemon.worker($0).pid != nil } })
    try daemon.done("foreground", "front")
    let pid = try #require(try daemon.worker("back").pid)
    kill(pid, SIGKILL)
    #expect(
      try eventually {
        let back = try daemon.worker("back")
        return back.state == "background" && back.pid != nil && back.pid != pid
      }, "\(daemon.logText)")
    #expect(try daemon.worker("front").state == "foreground")
    try daemon.done("restart", "back")
    #expect(try daemon.worker("back").state == "background")
    #expect(try daemon.worker("front").state == "foreground")
    // It also returns to the foreground when it is restarted itself.
    try daemon.done("restart", "front")
    #expect(try daemon.worker("front").state == "foreground")
  }

  @Test(
    "At the start, the last configured worker is in front even if others become ready later"
  )
  func atStart() throws {
    let scratch = try Scratch()
    let wait = "until [ -e \(scratch.path)/go ]; do sleep 0.05; done"
    let slow = "sh -c '\(wait); echo up; exec sleep 675'"
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h } }
      workers:
        needs: { command: sleep 677, depends_on: [slow] }
        slow: { command: "\(slow)", readiness: { log_line: up } }
        quick: { command: sleep 676 }

      """)
    try daemon.wait("quick", toBe: "foreground")
    _ = try scratch.write("go", "")
    try daemon.wait("slow", toBe: "background")
    try daemon.wait("needs", toBe: "background")
    #expect(try daemon.worker("quick").state == "foreground")
  }

  @Test(
    "The foreground worker stays in front when the daemon is killed and the next one starts workers"
  )
  func overDaemons() throws {
    let daemon = try TestDaemon(Self.configuration)
    // Both are launched at once, and the last one of the configuration takes the foreground.
    #expect(
      try eventually { try ["front", "back"].allSatisfy { try daemon.worker($0).pid != nil } })
    try daemon.done("foreground", "front")
    let pid = try #require(try daemon.worker("back").pid)
    try daemon.crash()
    kill(pid, SIGKILL)
    try daemon.start()
    try daemon.wait("back", toBe: "background")
    try daemon.wait("front", toBe: "foreground")
  }
}

@Suite("A configuration that a running worker doesn't have yet") struct PendingConfigurationTests {
  @Test(
    "`status` shows a configuration that isn't applied yet, and `reload --restart` applies it"
  )
  func restarted() throws {
    let before = "workers: { web: { command: sleep 672 }, other: { command: sleep 673 } }\n"
    let daemon = try TestDaemon(before)
    #expect(
      try eventually { try ["web", "other"].allSatisfy { try daemon.worker($0).pid != nil } })
    try daemon.done("foreground", "other")
    let other = try daemon.worker("other").pid
    try daemon.rewrite(before.replacing("672", with: "674"))
    try daemon.done("reload")
    let web = try daemon.worker("web")
    #expect(web.command == ["sleep", "672"] && web.changedSinceLaunch == ["command"])
    let status = try daemon.done("status", "web")
    #expect(status.contains("`dormouse restart web` applies it"), "\(status)")
    #expect(try daemon.done("reload", "--restart").hasSuffix("web: restarted\n"))
    let after = try daemon.worker("web")
    #expect(after.command == ["sleep", "674"] && after.changedSinceLaunch == nil)
    #expect(after.pid != web.pid)
    #expect(try daemon.worker("other").pid == other)
  }
}
