import Control
import TestSupport
import Testing

@Suite("The automatic life cycle") struct LifeCycleTests {
  @Test(
    "A background worker is suspended and hibernated after its delays, and the log has the reasons"
  )
  func displaced() throws {
    let first = try WebWorker(megabytes: 1, name: "first")
    let second = try WebWorker(megabytes: 1, name: "second", more: "autostart: false")
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 300ms, shed_deadline: 300ms }
        hibernate: { after: 500ms, cooldown: 0s, only_if_faster_than_relaunch: false }
      workers:

      """ + first.entry() + second.entry())
    try daemon.wait("first", toBe: "foreground")
    let connection = try HTTPConnection(port: first.port)
    #expect(try connection.get("/count") == "1")
    try daemon.done("start", "second")
    #expect(try daemon.worker("second").state == "foreground")
    try daemon.wait("first", toBe: "hibernated")
    for message in [
      "first: foreground → background: second came to the foreground",
      "first: background → suspending: in the background for",
      "first: suspended → hibernating: ",
      "first: hibernating → hibernated",
    ] {
      try daemon.waitForLogText(message)
    }

    try daemon.done("foreground", "first")
    #expect(try connection.get("/count") == "2")
    try daemon.waitForLogText("second: foreground → background: first came to the foreground")
    try daemon.wait("second", toBe: "hibernated")
    #expect(try daemon.worker("first").state == "foreground")
  }

  @Test func `A worker with a background task isn't suspended before the task ends`() throws {
    let scratch = try Scratch()
    let script = try scratch.write(
      "busy.py",
      """
      import os, signal, socket, time
      out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      out.connect(os.environ["NOTIFY_SOCKET"])
      signal.signal(signal.SIGUSR1, lambda *_: out.send(b"X_DORMOUSE_TASK_END=upload"))
      out.send(b"X_DORMOUSE_TASK=upload\\nREADY=1\\nSTATUS=working")
      # Not pause(): a signal that comes just before it would wait for the next one.
      while True: time.sleep(0.2)
      """)
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 100ms, shed_deadline: 100ms } }
      workers:
        busy: { command: [\(TestMachine.python), \(script)], readiness: { notify: true } }
      """)
    try daemon.wait("busy", toBe: "foreground")
    try daemon.done("background", "busy")
    #expect(try daemon.worker("busy").tasks == ["upload"])
    let stayed = try eventually(within: .milliseconds(500)) {
      try daemon.worker("busy").state != "background"
    }
    #expect(!stayed)
    _ = try Command(arguments: ["kill", "-USR1", "\(try daemon.worker("busy").pid ?? 0)"])
      .run(in: scratch)
    try daemon.wait("busy", toBe: "suspended")
  }
}
