import Glibc
import TestSupport
import Testing

@testable import Bench
@testable import Linux

/// Runs whole benchmarks, with programs that every machine has.
@Suite(.serialized) struct BenchTests {
  /// A program that reports when it is ready, and then only keeps a megabyte.
  private static let quiet = [
    "/bin/sh", "-c",
    "x=dormouse; while [ ${#x} -lt 1000000 ]; do x=$x$x; done; echo ready now; read y < \"$FIFO\"",
  ]

  @Test func `Every mechanism is measured in every round, or says why it isn't`() throws {
    try withFixture { (fixture) throws in
      var options = fixture.options(Self.quiet)
      options.readiness = .logLine("ready")
      options.rounds = 3
      var steps: [BenchMechanism?] = []
      let report = try Bench.run(options) { steps.append($0.mechanism) }

      for result in report.mechanisms {
        let count = result.milliseconds.count
        if count == 0 {
          #expect(result.refusal?.isEmpty == false, "\(result)")
          #expect(result.statistics == nil)
        } else {
          // Another test may turn swap on or off meanwhile.
          #expect(count + result.refusals == 3, "\(result)")
          #expect(result.milliseconds.allSatisfy { $0 > 0 })
        }
      }
      for mechanism in [BenchMechanism.signal, .cached, .relaunch] {
        #expect(report.result(mechanism)?.statistics != nil, "\(mechanism)")
      }
      #expect(report.hibernates)
      for one in report.hibernations {
        #expect(one.givenBack > 900_000, "\(one)")
        #expect(one.imageBytes > 0 && one.imageBytes < one.movedBytes)
      }
      #expect(steps.first == .some(nil))
      #expect(Set(steps.compactMap(\.self)) == Set(BenchMechanism.allCases))
      #expect(try fixture.leftovers() == [])
    }
  }

  @Test func `A command can be the request, and its success is the answer`() throws {
    try withFixture { (fixture) throws in
      var options = fixture.options(Self.quiet)
      options.readiness = .logLine("ready")
      options.request = .command("kill -0 $PPID && true")
      options.rounds = 1
      let report = try Bench.run(options)
      #expect(report.result(.cached)?.milliseconds.count == 1)
      #expect(report.request == "kill -0 $PPID && true")
    }
  }

  @Test func `Without a request or a sign of readiness, a relaunch isn't timed`() throws {
    try withFixture { (fixture) throws in
      var options = fixture.options(Self.quiet)
      options.rounds = 1
      let report = try Bench.run(options)
      #expect(report.result(.relaunch)?.refusal?.contains("--ready-line") == true)
      #expect(report.hibernates)
    }
  }

  @Test
  func `A program that ends early is an error with its last output, and leaves nothing behind`()
    throws
  {
    try withFixture { (fixture) throws in
      var options = fixture.options(["/bin/sh", "-c", "echo the port is taken; exit 3"])
      options.readiness = .logLine("ready")
      let error = #expect(throws: BenchError.self) { try Bench.run(options) }
      #expect(error?.description.contains("ended before it was ready") == true)
      #expect(error?.description.contains("the port is taken") == true)
      #expect(try fixture.leftovers() == [])
    }
  }

  @Test func `A program that can't be started leaves nothing behind`() throws {
    try withFixture { (fixture) throws in
      let error = #expect(throws: BenchError.self) {
        try Bench.run(fixture.options([fixture.fifo]))
      }
      #expect(error?.description.contains(fixture.fifo) == true)
      #expect(try fixture.leftovers() == [])
    }
  }

  @Test func `A program that is never ready is an error after its time limit`() throws {
    try withFixture { (fixture) throws in
      var options = fixture.options(["/bin/sh", "-c", "read y < \"$FIFO\""])
      options.readiness = .logLine("ready")
      options.timeout = .milliseconds(100)
      let error = #expect(throws: BenchError.self) { try Bench.run(options) }
      #expect(error?.description.contains("was not ready within") == true)
      #expect(try fixture.leftovers() == [])
    }
  }

  @Test func `A program that can't be hibernated is measured without hibernation, with the reason`()
    throws
  {
    try withFixture { (fixture) throws in
      // This process never waits, so it has no thread that could free its pages.
      var options = fixture.options(["/bin/sh", "-c", "echo ready; while :; do :; done"])
      options.readiness = .logLine("ready")
      options.rounds = 1
      let report = try Bench.run(options)
      #expect(!report.hibernates)
      #expect(report.hibernationRefusal?.contains("busy") == true)
      #expect(report.result(.signal)?.milliseconds.count == 1)
    }
  }

  @Test func `A port that another program uses is an error before anything is started`() throws {
    try withFixture { (fixture) throws in
      let listener = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
      #expect(listen(listener.raw, 1) == 0)
      let url = "http://127.0.0.1:\(localPort(of: listener.raw))/"
      var options = fixture.options(["/bin/sh", "-c", "touch \"$FIFO.started\""])
      options.request = .http(try #require(HTTPAddress(url)))
      let error = #expect(throws: BenchError.self) { try Bench.run(options) }
      #expect(error?.description.contains("another program listens") == true)
      #expect(access("\(fixture.fifo).started", F_OK) != 0)
    }
  }

  // MARK: support

  private struct Fixture {
    let directory: String
    var fifo: String { "\(directory)/fifo" }
    var images: String { "\(directory)/images" }

    func options(_ command: [String]) -> BenchOptions {
      BenchOptions(
        command: command, directory: "/", environment: ["PATH": "/usr/bin:/bin", "FIFO": fifo],
        imageDirectory: images)
    }

    /// The files, cgroups and processes that are left.
    func leftovers() throws -> [String] {
      var leftovers = try listDirectory(directory).filter { $0 != "fifo" }
      for group in try CgroupRoot.groupsOfThisProcess() {
        leftovers += try listDirectory(group).filter { $0 == "dormouse-bench-\(getpid())" }
      }
      leftovers += try listNumbers("/proc").filter {
        (try? readText("/proc/\($0)/environ"))?.contains("FIFO=\(fifo)") == true
      }.map { "process \($0)" }
      return leftovers
    }
  }

  private func withFixture(_ body: (Fixture) throws -> Void) throws {
    let directory = try BorrowedDirectory(newIn: "/tmp", prefix: "dormouse-test-")
    defer { directory.end() }
    let fixture = Fixture(directory: directory.usable)
    #expect(mkfifo(fixture.fifo, 0o600) == 0)
    try body(fixture)
  }
}
