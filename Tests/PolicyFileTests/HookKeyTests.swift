import Policy
import Testing

@testable import PolicyFile

@Suite struct `The keys of on` {
  @Test func `Commands are a text, a list of words or a list of commands`() throws {
    let result = configuration(
      """
      on:
        jetsam: [notify-send, "${WHO:-all}: memory"]
        hibernated: logger slept
        any: [[a, b], [c]]
        timeout: 30s
      workers:
        web: { command: [web], environment: { ROOM: 7 }, on: { crashed: [page, "${ROOM}"] } }
      """)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let hooks = try #require(result.value?.hooks)
    #expect(hooks.commands[.jetsam] == [["notify-send", "all: memory"]])
    #expect(hooks.commands[.hibernated] == [["logger", "slept"]])
    #expect(hooks.commands[.everything] == [["a", "b"], ["c"]])
    #expect(hooks.timeout == .seconds(30) && !hooks.isEmpty)
    #expect(result.value?.workers.first?.hooks.commands == [.crashed: [["page", "7"]]])
    #expect(configuration("on:").value?.hooks.isEmpty == true)
  }

  @Test(
    arguments: [
      (
        "on: { hibernatd: a }", "1:7", "unknown key `hibernatd` in `on`",
        "did you mean `hibernated`?"
      ),
      ("on: { hibernated: [] }", "1:19", "`hibernated` names no program", nil),
      ("on: { any: [[a], []] }", "1:18", "`any` names no program", nil),
      ("on: { timeout: 1h }", "1:16", "`timeout` must be between `1s` and `10m`", nil),
      (
        "on: notify-send", "1:5", "`on` must be a mapping of keys to values, not `notify-send`", nil
      ),
      (
        "workers: { web: { command: web, on: { jetsam: a } } }", "1:39",
        "`jetsam` is no event of one worker", "write `terminated_for_memory`"
      ),
      (
        "workers: { web: { command: web, on: { pressure: a } } }", "1:39",
        "`pressure` is no event of one worker", "move it to `on` at the top of the file"
      ),
    ] as [(String, String, String, String?)])
  func `A wrong key or value is an error with its position and a suggestion`(
    text: String, location: String, message: String, suggestion: String?
  ) throws {
    let result = configuration(text)
    #expect(result.value == nil)
    let diagnostic = try #require(result.diagnostics.first)
    #expect(diagnostic.message == message)
    #expect(diagnostic.suggestion == suggestion)
    #expect(diagnostic.position.map { "\($0.line):\($0.column)" } == location)
  }

  @Test func `A worker's commands are rendered as they are read, and a change of them is listed`()
    throws
  {
    let text =
      "workers: { web: { command: web, on: { woken: [[a, b], [c]], crashed: d, timeout: 5s } } }"
    let worker = try #require(configuration(text).value?.workers.first)
    let again = configuration("workers:\n" + ConfigurationFile.render(worker)).value?.workers.first
    #expect(again?.hooks.commands == worker.hooks.commands)
    #expect(again?.hooks.timeout == .seconds(5))
    var other = worker
    other.hooks.commands[.woken] = nil
    #expect(other.changes(from: worker) == [WorkerChange("on")])
  }
}
