import Control
import Glibc
import TestSupport
import Testing

@Suite("Reloads of the configuration") struct ReloadTests {
  @Test("`reload` reads the files again that the policy extends, under the same overrides")
  func extended() throws {
    let text = """
      policy: ./mine.yaml
      policy_overrides: { hibernate: { cooldown: 7s } }
      workers:
        stays: { command: sleep 100001 }

      """
    let daemon = try TestDaemon("workers: { stays: { command: sleep 100001 } }\n")
    _ = try daemon.scratch.write(
      "base.yaml", "extends: ios-5\nhibernate: { after: 41s, cooldown: 1s }\n")
    _ = try daemon.scratch.write("mine.yaml", "extends: ./base.yaml\n")
    try daemon.rewrite(text)
    #expect(try daemon.done("reload").hasPrefix("policy ios-5 → mine (2 values)"))
    _ = try daemon.scratch.write(
      "base.yaml", "extends: ios-5\nhibernate: { after: 42s, cooldown: 2s }\n")
    #expect(try daemon.done("reload") == "policy mine: hibernate.after 41s → 42s\n")
    let shown = try daemon.done("policy", "show", "--effective")
    #expect(shown.contains("base.yaml:2") && shown.contains("dormouse.yaml:2 (override)"))
    _ = try daemon.scratch.write("base.yaml", "extends: ./mine.yaml\n")
    let outcome = try daemon.verb("reload")
    #expect(outcome.code == 1 && outcome.error.contains("base.yaml:1:10: error: `extends` makes a"))
    #expect(try daemon.done("policy", "show", "--effective").contains("base.yaml:2"))
  }
}
