import Foundation
import Testing

/// `scripts/run-tests` over a bundle that only says what a bundle says.
@Suite("scripts/run-tests")
struct RunTestsTests {
  @Test func `run-tests passes when each listed test has passed`() throws {
    let run = try Self.run()
    #expect(run.code == 0, "\(run.output)")
    #expect(run.output.contains("Test run with 3 tests in 2 suites passed"))
    #expect(!run.output.contains("started."))
  }

  @Test("run-tests fails when a test has failed, and repeats the test's issue at the end")
  func fails() throws {
    let run = try Self.run(breaking: "One", by: "fail")
    #expect(run.code == 1)
    #expect(run.output.contains("run-tests: ✘   Test \"a\" recorded an issue"))
    #expect(run.output.contains("run-tests: ✘     of it: what the program printed and more"))
    #expect(run.output.contains("Test run with 3 tests in 2 suites failed with 1 issue"))
  }

  @Test func `run-tests says how many tests and cases are left to make test-all`() throws {
    let run = try Self.run(breaking: "One", by: "leave")
    #expect(run.code == 0, "\(run.output)")
    #expect(run.output.contains("run-tests: 1 tests and 7 cases of 2 others are left out"))
  }

  @Test func `run-tests fails when a process dies, and names the test that was running`() throws {
    let run = try Self.run(breaking: "Two", by: "die")
    #expect(run.code == 1)
    #expect(run.output.contains("run-tests: ✘   under way: Test \"c\""))
    #expect(run.output.contains("3 tests are in the bundle, and 2 were run to their end"))
  }

  @Test func `run-tests fails when a listed test wasn't run`() throws {
    let run = try Self.run(breaking: "Two", by: "forget")
    #expect(run.code == 1)
    #expect(run.output.contains("3 tests are in the bundle, and 2 were run to their end"))
  }

  @Test func `run-tests fails when a process hangs, and names the test that was running`() throws {
    let run = try Self.run(breaking: "Two", by: "hang", "--limit", "1")
    #expect(run.code == 1)
    #expect(run.output.contains("took longer than the limit"))
    #expect(run.output.contains("run-tests: ✘   under way: Test \"c\""))
  }

  /// Two suites: `One` has the tests a and b, one with a space in the suite's name has c.
  private static func bundle(breaking suite: String, by how: String) -> String {
    """
    #!/bin/sh
    case "$*" in
    *--list-tests*)
      echo 'EndToEndTests.One/a()'; echo 'EndToEndTests.One/b()'
      echo 'EndToEndTests.`Two of them`/`c/d`()'; exit;;
    esac
    count=0; code=0; issues=
    case "$*" in *One*)
      echo '◇ Test "a" started.'; count=2
      if [ "\(suite) \(how)" = "One fail" ]; then
        echo '✘ Test "a" recorded an issue at A.swift:1:1: Expectation failed'
        echo '↳ what the program printed'; echo 'and more'
        code=1; issues=' with 1 issue'
      elif [ "\(suite) \(how)" = "One leave" ]; then
        echo '➜ Test "b" skipped: "only in make test-all"'
        # A list of cases may be made twice.
        echo 'Only in make test-all: 3 of 4 cases at A.swift:1'
        echo 'Only in make test-all: 3 of 4 cases at A.swift:1'
        echo 'Only in make test-all: 4 of 8 cases at B.swift:2'
      fi;;
    esac
    case "$*" in *'`Two of them`'*)
      echo '◇ Test "c" started.'
      case "\(suite) \(how)" in
      'Two die') exit 139;;
      'Two hang') exec sleep 60;;
      'Two forget') ;;
      *) count=$((count + 1));;
      esac;;
    esac
    [ $code = 0 ] && word=passed || word=failed
    echo "✔ Test run with $count tests in 1 suites $word after 0.1 seconds$issues."
    exit $code
    """
  }

  private static func run(
    breaking suite: String = "none", by how: String = "nothing", _ options: String...
  ) throws -> (code: Int32, output: String) {
    let path = FileManager.default.temporaryDirectory
      .appending(path: "dormouse-bundle-\(UUID().uuidString)")
    try bundle(breaking: suite, by: how).write(to: path, atomically: false, encoding: .utf8)
    defer { unlink(path.path()) }
    chmod(path.path(), 0o700)
    let process = Process()
    process.executableURL = Repository.root.appending(path: "scripts/run-tests")
    process.arguments = ["--bundle", path.path(), "--group", "1"] + options
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, output)
  }
}
