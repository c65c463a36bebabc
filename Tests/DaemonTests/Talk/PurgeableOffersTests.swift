import Lifecycle
import Linux
import Policy
import TestSupport
import Testing
import WorkerProtocol

@testable import Daemon

@Suite("Purgeable memory that a worker has offered") struct PurgeableOffersTests {
  private let world: ConversationWorld
  private let conversation: WorkerConversation
  private var offers: PurgeableOffers { conversation.offers }
  /// A descriptor in place of a connection's.
  private let connection: Descriptor

  init() throws {
    world = try ConversationWorld()
    conversation = try world.begin()
    connection = try Descriptor.open("/dev/null", 0)
  }

  private func add(_ memory: OfferedMemory?, from number: UInt64 = 1) -> String? {
    offers.add(memory?.descriptor, from: number, over: connection)
  }

  /// Waits until the memory on offer has been counted.
  private func count() throws { try world.adapters.turn { !offers.isCounting } }

  private func offered(_ bytes: Int64) -> Event { .purgeableOffered(world.id, ByteCount(bytes)) }

  @Test func `Offered memory is reported and saved, one piece for each connection`() throws {
    let (first, second) = (try OfferedMemory(), try OfferedMemory(pages: 8))
    #expect(offers.purge == nil)
    #expect(add(first) == nil)
    #expect(add(second) == "`purgeable`: one memfd for each connection")
    try count()
    #expect(add(second, from: 2) == nil)
    try count()
    #expect(world.events == [offered(first.bytes), offered(first.bytes + second.bytes)])
    #expect(offers.inodes.count == 2)
    #expect(try world.recorded().purgeable == offers.inodes)
    offers.didDisconnect(1)
    offers.didDisconnect(7)
    try count()
    #expect(world.events.count == 3 && world.events.last == offered(second.bytes))
  }

  @Test func `The first offer of memory must have a descriptor of a sealed file`() throws {
    #expect(add(nil) == "`purgeable`: the first message needs a descriptor")
    #expect(add(try OfferedMemory(isSealed: false))?.hasPrefix("`purgeable`: ") == true)
    #expect(world.events == [] && offers.inodes.isEmpty)
    #expect(throws: (any Error).self) { try world.recorded() }
  }

  @Test func `Offered memory is counted at most once in 100 ms`() throws {
    let memory = try OfferedMemory()
    #expect(add(memory) == nil)
    try count()
    try memory.setState(.unused(generation: 2))
    for _ in 0..<10 { #expect(add(nil) == nil) }
    #expect(world.events.count == 1 && world.timers.pending.count == 1)
    world.timers.advance(by: .milliseconds(100))
    try count()
    #expect(world.events.last == offered(0) && world.timers.pending == [])
  }

  @Test func `Offered memory is counted at a sample if its size or the pressure rises`() throws {
    #expect(!offers.sample())
    let memory = try OfferedMemory(pages: 64)
    #expect(add(memory) == nil)
    #expect(offers.sample(), "the footprint has moved by all of it")
    #expect(!offers.sample())
    try count()
    try memory.setState(PurgeableState(generation: 1, accesses: 1))
    #expect(!offers.sample() && world.events.count == 1)
    world.pressure = .warning
    #expect(!offers.sample())
    try count()
    #expect(world.events.last == offered(0))
  }

  @Test func `The event loop doesn't wait for a count, and a later sample counts again`() throws {
    let (gate, memory) = (ThreadGate(), try OfferedMemory())
    defer { gate.open() }
    // An earlier count waits for a page of a table.
    world.adapters.services.jobs.run(about: "purgeable memory of web", within: .seconds(60)) {
      gate.pass()
    } then: { _ in
    }
    #expect(add(memory) == nil)
    try count()
    #expect(world.events == [])
    gate.open()
    try world.adapters.turn {
      _ = offers.sample()
      return world.events == [offered(memory.bytes)]
    }
  }

  @Test func `Memory that is withdrawn during its count isn't on offer afterwards`() throws {
    #expect(add(try OfferedMemory()) == nil)
    offers.didDisconnect(1)
    try count()
    #expect(world.events == [])
  }

  @Test func `Offered memory is purged as it was offered, also if the run ends meanwhile`() throws {
    let memory = try OfferedMemory()
    #expect(add(memory) == nil)
    try count()
    let purge = try #require(offers.purge)
    offers.end()
    #expect(offers.purge == nil && offers.inodes.isEmpty)
    #expect(purge() == memory.bytes && purge() == 0)
    offers.recount()
    #expect(world.events == [offered(memory.bytes)], "the run is over")
  }

  @Test func `Memory offered over a connection stays on offer when the worker is woken`() throws {
    #expect(add(try OfferedMemory()) == nil)
    try count()
    offers.dropRestored()
    #expect(offers.inodes.count == 1 && world.events.count == 1)
  }
}
