import Control
import Linux
import TestSupport
import Testing

@Suite("`init` and `policy list`") struct InitTests {
  @Test("`init` writes an example that can be started, and never changes a file")
  func example() throws {
    let home = try Home()
    let outcome = try home.run(["init"], in: "run")
    #expect(outcome.code == 0 && outcome.error.contains("with an example"), "\(outcome)")
    let check = try home.run(["policy", "check", "dormouse.yaml"], in: "run")
    #expect(check.code == 0 && !check.error.contains("warning"), "\(check)")
    let text = try readText("\(home.scratch.path)/run/dormouse.yaml")
    let again = try home.run(["init"], in: "run")
    #expect(again.code == CommandExit.cannotCreate.rawValue, "\(again)")
    #expect(try readText("\(home.scratch.path)/run/dormouse.yaml") == text)
    // What is commented out is right, too.
    let whole = text.replacing("  # jobs:", with: "  jobs:").replacing("  #   ", with: "    ")
      .replacing("# restart:", with: "restart:").replacing("# policy:", with: "policy:")
    try home.scratch.write("run/whole.yaml", whole)
    let all = try home.run(["policy", "check", "run/whole.yaml"], in: "run/..")
    #expect(all.code == 0, "\(whole)\n\(all)")
  }

  @Test("`init` converts the first file of another supervisor, and names the others")
  func converted() throws {
    let home = try Home()
    try home.scratch.write("run/Procfile", "web: sleep 700\n")
    try home.scratch.write("run/supervisord.conf", "[program:x]\ncommand=sleep 701\n")
    let outcome = try home.run(["init"], in: "run")
    #expect(outcome.code == 0 && outcome.error.contains("from Procfile"), "\(outcome)")
    #expect(outcome.error.contains("not converted: supervisord.conf"), "\(outcome)")
    #expect(try readText("\(home.scratch.path)/run/dormouse.yaml").contains("700"))
  }

  @Test("`policy list` has each policy with what it is for, and marks that of the daemon")
  func list() throws {
    let home = try Home()
    let without = try home.run(["policy", "list"], in: "")
    #expect(without.code == 0 && without.output.contains("many services on one machine"))
    #expect(!without.output.contains("yes"), "\(without)")
    #expect(try home.run(["daemon", "-d", "--policy", "server"], in: "").code == 0)
    let lines = try home.run(["policy", "list"], in: "").output.split(separator: "\n")
    #expect(lines.filter { $0.contains(" yes ") }.map { $0.hasPrefix("server ") } == [true])
  }
}
