import DaemonFakes
import Glibc
import Linux
import TestSupport
import Testing

@testable import Wrap

@Suite("The other ends of a wrapped program's input and output") struct HostPipesTests {
  /// The program's ends belong to this process here. A test closes the wrapper's copies.
  private final class World {
    let watches = FakeLoop()
    let timers = FakeLoop()
    private(set) var abandoned = 0
    var hostInput: Descriptor?
    var hostOutput: Descriptor?
    /// The program's copies, which outlive the wrapper's.
    private let kept: [Descriptor]
    private(set) var pipes: HostPipes?

    init(sockets: Bool = false) throws {
      let (input, hostInput) = try Self.ends(sockets)
      let (hostOutput, output) = try Self.ends(sockets)
      (self.hostInput, self.hostOutput) = (hostInput, hostOutput)
      kept = try [input.raw, output.raw].map { raw in
        Descriptor(owning: try systemCall("dup") { dup(raw) })
      }
      pipes = HostPipes(
        input: input.raw, output: output.raw, grace: .seconds(10), watches: watches,
        timers: timers
      ) { [unowned self] in abandoned += 1 }
      pipes?.watch()
    }

    private static func ends(_ areSockets: Bool) throws -> (Descriptor, Descriptor) {
      if !areSockets { return try unblockedPipe() }
      var ends: [Int32] = [-1, -1]
      _ = try systemCall("socketpair") {
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
      }
      return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    }
  }

  @Test(
    "When its host has closed both, the program counts as abandoned only after the grace",
    arguments: [false, true])
  func bothEnd(sockets: Bool) throws {
    let world = try World(sockets: sockets)
    world.hostInput = nil
    world.hostOutput = nil
    try world.watches.serve()
    world.timers.advance(by: .milliseconds(9_999))
    #expect(world.abandoned == 0)
    world.timers.advance(by: .milliseconds(1))
    #expect(world.abandoned == 1)
    #expect(world.watches.active == 0)
  }

  @Test(
    "The end of one alone isn't the host's end: a filter reads all of its input before it answers",
    arguments: [false, true])
  func oneEnds(inputFirst: Bool) throws {
    let world = try World()
    if inputFirst { world.hostInput = nil } else { world.hostOutput = nil }
    try world.watches.serve()
    world.timers.advance(by: .seconds(3600))
    #expect(world.abandoned == 0)
    world.hostInput = nil
    world.hostOutput = nil
    try world.watches.serve()
    world.timers.advance(by: .seconds(10))
    #expect(world.abandoned == 1)
  }

  @Test("A program that reads or writes a file isn't watched, because it may be a batch job")
  func files() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let (input, output) = try unblockedPipe()
    func pipes(_ input: Descriptor, _ output: Descriptor) -> HostPipes? {
      HostPipes(
        input: input.raw, output: output.raw, grace: .zero, watches: FakeLoop(),
        timers: FakeLoop()
      ) {}
    }
    #expect(pipes(null, output) == nil && pipes(input, null) == nil)
    #expect(pipes(input, output) != nil)
  }

  @Test("If the end of its host counts, one pipe is enough, and its end says that nothing is left")
  func onePipe() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let input: Descriptor
    var held: Descriptor?
    (input, held) = try unblockedPipe()
    let (watches, timers) = (FakeLoop(), FakeLoop())
    var abandoned = 0
    func pipes(_ input: Descriptor) -> HostPipes? {
      HostPipes(
        input: input.raw, output: null.raw, needsBoth: false, grace: .seconds(10),
        watches: watches, timers: timers
      ) { abandoned += 1 }
    }
    #expect(pipes(null) == nil)
    let watched = try #require(pipes(input))
    #expect(!watched.hasBoth)
    watched.watch()
    try watches.serve()
    timers.advance(by: .seconds(3600))
    #expect(abandoned == 0 && held != nil)
    held = nil
    try watches.serve()
    timers.advance(by: .seconds(10))
    #expect(abandoned == 1)
  }

  @Test("A named pipe that has another reader and writer before the grace is over isn't abandoned")
  func reopened() throws {
    let scratch = try Scratch()
    let (requests, answers) = (scratch.uniquePath("requests"), scratch.uniquePath("answers"))
    for path in [requests, answers] {
      _ = try systemCall("mkfifo", on: path) { mkfifo(path, 0o600) }
    }
    let input = try Descriptor.open(requests, O_RDONLY | O_NONBLOCK)
    var host: [Descriptor] = [
      try Descriptor.open(requests, O_WRONLY), try Descriptor.open(answers, O_RDONLY | O_NONBLOCK),
    ]
    let output = try Descriptor.open(answers, O_WRONLY)
    let (watches, timers) = (FakeLoop(), FakeLoop())
    var abandoned = 0
    let pipes = HostPipes(
      input: input.raw, output: output.raw, grace: .seconds(10), watches: watches, timers: timers
    ) { abandoned += 1 }
    pipes?.watch()
    host = []
    try watches.serve()
    host = [
      try Descriptor.open(requests, O_WRONLY), try Descriptor.open(answers, O_RDONLY | O_NONBLOCK),
    ]
    timers.advance(by: .seconds(10))
    #expect(abandoned == 0 && host.count == 2)
    host = []
    try watches.serve()
    timers.advance(by: .seconds(10))
    #expect(abandoned == 1)
  }
}
