import Testing

@testable import PolicyFile

@Suite("Values of systemd's services that mean something else in a configuration")
struct UnitValueTests {
  @Test("`Environment` gives no variable that a file of `EnvironmentFile` sets, as in systemd")
  func overriddenVariables() throws {
    let text = """
      [Service]
      ExecStart=/bin/a
      Environment=PORT=80 MODE=x
      EnvironmentFile=-/etc/default/none
      EnvironmentFile=/etc/default/a
      EnvironmentFile=/etc/default/secret
      """
    let file = UnitImport.File(path: "a.service", text: text)
    let result = UnitImport.convert(
      unit: "a.service", files: [file], pathExists: { !$0.hasSuffix("none") },
      variables: { $0 == "/etc/default/a" ? ["PORT": "8080", "OTHER": "1"] : nil })
    let imported = try #require(result.value, "\(result.rendered)").text
    let flat = imported.replacing("\n    #", with: "")
    #expect(flat.contains("environment: { MODE: x }"), "\(imported)")
    #expect(flat.contains("without `PORT`, which `EnvironmentFile` overrides"), "\(imported)")
    #expect(flat.contains("remove from `environment` what `/etc/default/secret` sets"))
  }

  @Test(arguments: [
    ("TimeoutStopSec=infinity", "stop_grace: 1h"), ("TimeoutSec=0", "stop_grace: 1h"),
    ("TimeoutStopSec=2min", "stop_grace: 120s"), ("Nice=1", "stop_grace: 90s"),
    ("TimeoutStopSec=1 fortnight", "`TimeoutStopSec=1 fortnight`"),
    ("KillMode=mixed", "all of its processes get the stop signal"),
  ])
  func `A stop that can't be the same keeps its time as far as possible, and gets a comment`(
    line: String, expected: String
  ) throws {
    let file = UnitImport.File(
      path: "a.service", text: "[Service]\nExecStart=/bin/a\n\(line)\n")
    let (text, _) = try readImport(
      UnitImport.convert(unit: "a.service", files: [file]) { _ in true })
    #expect(text.contains(expected), "\(text)")
  }

  @Test func `A service in the home directory of its user doesn't start in that of the daemon`()
    throws
  {
    let lines = "[Service]\nExecStart=/bin/a\nWorkingDirectory=~\nUser=web\n"
    let file = UnitImport.File(path: "a.service", text: lines)
    let (text, configuration) = try readImport(
      UnitImport.convert(unit: "a.service", files: [file]) { _ in true },
      environment: ["HOME": "/root"])
    #expect(configuration.workers.map(\.autostart) == [false], "\(text)")
    #expect(text.contains("write the home directory of its `user`"), "\(text)")
  }

  @Test func `A time of 0 to stop isn't endless for Podman, as it is for systemd`() throws {
    for (line, isEndless) in [("StopTimeout=0", false), ("[Service]\nTimeoutStopSec=0", true)] {
      let result = QuadletImport.convert(
        text: "[Container]\nExec=/bin/a\n\(line)\n", file: "a.container"
      ) { _ in true }
      let text = try readImport(result).text
      #expect(text.contains("stop_grace: 1h") == isEndless, "\(text)")
    }
  }
}
