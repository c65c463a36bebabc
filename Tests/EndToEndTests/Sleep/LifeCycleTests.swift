import Control
import TestSupport
import Testing

@Suite("The automatic life cycle") struct LifeCycleTests {
  @Test(
    "A background worker is suspended and hibernated after its delays, and the log has the reasons")
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
}
