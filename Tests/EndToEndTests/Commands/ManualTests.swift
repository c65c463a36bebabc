import Glibc
import Linux
import TestSupport
import Testing

@Suite("The manual") struct ManualTests {
  @Test("The manual's pages are made from the executable's help and have every verb and key")
  func complete() throws {
    let scratch = try Scratch()
    let pages = "\(scratch.path)/pages"
    try write(pages, scratch)
    let command = try readText("\(pages)/dormouse.1")
    let help = try Command.dormouse(["--help"]).run(in: scratch).output
    // A verb's line: two blanks, the verb, blanks, what it does.
    let verbs = help.split(separator: "\n").filter {
      $0.hasPrefix("  ") && !$0.hasPrefix("   ") && !$0.hasPrefix("  -")
    }.compactMap { $0.split(separator: " ").first }
    #expect(verbs.count > 25, "\(verbs)")
    for verb in verbs where verb != "help" && Int(verb) == nil {
      let heading = ".SS dormouse \(verb)"
      #expect(command.contains("\(heading)\n") || command.contains("\(heading) "), "\(verb)")
    }
    #expect(try readText("\(pages)/dormouse-policy.5").contains("hibernate.max_footprint"))
    #expect(try readText("\(pages)/dormouse.yaml.5").contains("readiness.log_line"))
  }

  @Test func `groff and mandoc report no warning about the manual's pages`() throws {
    let scratch = try Scratch()
    let pages = "\(scratch.path)/pages"
    try write(pages, scratch)
    for checker in [["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-man", "-ww", "-z"]] {
      guard access("/usr/bin/\(checker[0])", X_OK) == 0 else {
        notTestedHere("\(checker[0]) isn't installed")
        continue
      }
      for page in try listDirectory(pages) {
        let outcome = try Command(arguments: checker + ["\(pages)/\(page)"]).run(in: scratch)
        #expect(outcome.code == 0 && outcome.output.isEmpty && outcome.error.isEmpty, "\(outcome)")
      }
    }
  }

  private func write(_ directory: String, _ scratch: Scratch) throws {
    let outcome = try Command(arguments: [
      TestMachine.python, "\(TestMachine.root)/scripts/manual", TestMachine.executable,
      directory,
    ]).run(in: scratch)
    #expect(outcome.code == 0 && outcome.error.isEmpty, "\(outcome)")
  }
}
