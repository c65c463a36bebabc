import Glibc
import Testing

@testable import FootprintTrace
@testable import Linux

@Suite struct RecordingTests {
  @Test(arguments: [
    ("consume", "consume"), ("/usr/bin/python3", "python3"), ("../../etc/passwd", "passwd"),
    ("a b\n\u{1B}[2J", "a_b___2J"), ("", "footprint"), ("..", "footprint"), ("-rf", "rf"),
    ("näme@1.2", "näme@1.2"),
    (String(repeating: "x", count: 300), String(repeating: "x", count: 60)),
  ])
  func `A recording's file is named after its subject, whose name may hold any characters`(
    name: String, stem: String
  ) {
    #expect(RecordingFile.stem(of: name) == stem)
  }

  @Test func `The sum of the kinds of memory is the footprint that the daemon uses`() throws {
    var pipes: (Int32, Int32) = (-1, -1)
    #expect(
      withUnsafeMutableBytes(of: &pipes) { pipe($0.bindMemory(to: Int32.self).baseAddress) } == 0)
    let (input, output) = (Descriptor(owning: pipes.0), Descriptor(owning: pipes.1))
    let program = try spawn(
      SpawnRequest(
        path: "/bin/cat", arguments: ["cat"], environment: [:], directory: "/", input: input.raw,
        output: STDERR_FILENO, error: STDERR_FILENO))
    defer {
      kill(program.pid, SIGKILL)
      while waitpid(program.pid, nil, 0) < 0, errno == EINTR {}
    }
    // The program waits for input after its start, and its footprint doesn't change any more.
    var last: Footprint?
    var footprint = try #require(try Footprint.measure(program.pid))
    while footprint != last || footprint.anonymous < 64 << 10 {
      last = footprint
      usleep(50_000)
      footprint = try #require(try Footprint.measure(program.pid))
    }
    var meter = ProcessTreeMeter()
    let sample = try meter.measure(ProcessTree.discover(root: program.identity), at: 0)
    #expect(sample.footprint == footprint.footprint && sample.processes == 1)
    #expect(sample.copied > 0 && sample.anonymous > 0 && sample.shared == 0)
    #expect(sample.copied + sample.anonymous <= footprint.anonymous)
    #expect(sample.clean > 0)
    _ = output
  }
}
