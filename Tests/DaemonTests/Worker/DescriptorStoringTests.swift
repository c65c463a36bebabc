import Glibc
import Linux
import Testing

@testable import Daemon

@Suite("A worker's stored descriptors") struct DescriptorStoringTests {
  private final class World {
    let adapters: AdapterWorld
    let worker: WorkerUnit
    /// Calls on the loop what the store's thread has reported.
    private(set) var hungUp: ((UInt64) -> Void)?
    private(set) lazy var storing = DescriptorStoring(
      adapters.handle(worker), timers: timers, workers: adapters.workers
    ) { [unowned self] body in
      hungUp = body
      return { _ in }
    }

    init() throws {
      adapters = try AdapterWorld()
      worker = try adapters.add("web", .terminated) { $0.fdstore = 3 }
      worker.process = try .forTest()
    }

    var timers: FakeLoop { adapters.timers }
    var lines: [String] { adapters.logFile.lines(about: "web") }

    func store(_ count: Int, _ name: String = "state") throws {
      let all = try (0..<count).map { _ in try EventCounter().descriptor }
      storing.keep(.store(all, name: name, isPolled: false))
    }
    /// The names of the descriptors that the next run gets.
    var names: [String] { storing.entriesForLaunch().map(\.name) }
  }

  private let world: World

  init() throws { world = try World() }

  @Test func `Stored descriptors are passed to the next run, and to the one after it`() throws {
    #expect(world.names.isEmpty)
    try world.store(1, "a")
    try world.store(1, "b")
    #expect(world.names == ["a", "b"])
    #expect(world.names == ["a", "b"])
    world.storing.keep(.remove(name: "a"))
    #expect(world.names == ["b"])
  }

  @Test func `Descriptors beyond the limit are closed, with one warning in each run`() throws {
    try world.store(5)
    try world.store(1)
    #expect(
      world.lines.count == 1
        && world.lines[0].contains("2 descriptors named state closed: the store is full"))
    #expect(world.names.count == 3)
    try world.store(1)
    #expect(world.lines.count == 2, "another run")
  }

  @Test func `A file can't be stored as a descriptor, and each run logs one warning`() throws {
    for _ in 0..<2 {
      let directory = try Descriptor.open("/", O_RDONLY)
      world.storing.keep(.store([directory], name: "dir", isPolled: false))
    }
    #expect(world.names.isEmpty && world.lines.count == 1)
    #expect(world.lines[0].contains("1 descriptors named dir closed"))
  }

  @Test func `Stored descriptors over a lowered limit are closed at the next launch`() throws {
    try world.store(3)
    world.worker.configuration.fdstore = 1
    #expect(world.names.count == 1)
    #expect(world.lines == ["2 of its stored descriptors closed: fdstore was lowered"])
  }

  @Test func `A stored descriptor is closed when its other end hangs up`() throws {
    try world.store(2)
    world.hungUp?(1)
    world.hungUp?(1)
    #expect(world.names.count == 1)
    #expect(world.lines == ["stored descriptor state closed: the other end hung up"])
  }

  @Test func `Stored descriptors are closed 10 s after the operator's stop`() throws {
    try world.store(2)
    world.storing.didStop()
    world.timers.advance(by: DescriptorStoring.removalDelay)
    #expect(world.names.count == 2, "it runs again")
    world.worker.process = nil
    world.storing.didStop()
    world.timers.advance(by: DescriptorStoring.removalDelay - .milliseconds(1))
    #expect(world.names.count == 2)
    world.timers.advance(by: .milliseconds(1))
    #expect(world.names.isEmpty)
    #expect(world.lines == ["its stored descriptors closed: it was stopped"])
  }

  @Test func `Descriptors that are stored after a stop aren't closed by it`() throws {
    try world.store(1, "old")
    world.worker.process = nil
    world.storing.didStop()
    world.storing.didStop()
    world.timers.advance(by: DescriptorStoring.removalDelay)
    world.storing.didStop()
    try world.store(1, "new")
    world.timers.advance(by: DescriptorStoring.removalDelay)
    #expect(world.names == ["new"] && world.lines.count == 1)
  }

  @Test func `Stored descriptors are kept while the worker is launched, or runs`() throws {
    try world.store(1)
    world.worker.process = nil
    let (workers, id) = (world.adapters.workers, world.worker.id)
    workers.launching = [id]
    world.storing.didStop()
    world.timers.advance(by: DescriptorStoring.removalDelay)
    workers.launching = []
    world.adapters.driver.send(.adopted(id, world.worker.profile, .background))
    world.storing.didStop()
    world.timers.advance(by: DescriptorStoring.removalDelay)
    #expect(world.names == ["state"])
  }
}
