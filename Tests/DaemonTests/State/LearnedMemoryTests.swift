import Glibc
import Lifecycle
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite struct MemoryTests {
  private static func sample() -> LearnedMemory {
    var memory = LearnedMemory()
    memory.savedAt = 1_000_000
    memory.exits["web"] = [
      ExitRecord(
        at: 999_000, why: "exited with status 1\n\"quoted\"", status: .exited(1),
        footprint: .megabytes(3), lastWords: "é \u{7}")
    ]
    var engine = Engine(policy: LifecyclePolicy())
    let start = Instant.zero + .seconds(50)
    _ = engine.handle(
      .added(WorkerID("web"), WorkerProfile(policy: LifecyclePolicy())), at: start)
    _ = engine.handle(.request(Request(id: 1, verb: .start, worker: WorkerID("web"))), at: start)
    _ = engine.handle(.launched(WorkerID("web")), at: start)
    memory.learned = engine.learned
    return memory
  }

  @Test func `Learned facts are equal after writing and reading, with their times`() throws {
    let memory = Self.sample()
    let text = try memory.encoded(at: .zero + .seconds(60))
    // The file is read a minute later, on a machine that was started five seconds ago.
    let read = try #require(
      LearnedMemory(Array(text.utf8), at: .zero + .seconds(5), time: memory.savedAt + 60))
    #expect(read.exits == memory.exits)
    // The first machine was started 10 s before the save, which was a minute ago: 65 s before this
    // machine.
    #expect(read.learned == memory.learned.moved(by: .seconds(-60 - 60 + 5)))
    // The clock was set back.
    let early = try #require(LearnedMemory(Array(text.utf8), at: .zero + .seconds(60), time: 5))
    #expect(early.learned == memory.learned)
  }

  @Test func `Damage at any byte of the learned facts, and any truncation, is detected`() throws {
    let bytes = Array(try Self.sample().encoded(at: .zero).utf8)
    #expect(LearnedMemory(bytes, at: .zero, time: 0) != nil)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 1
      #expect(LearnedMemory(damaged, at: .zero, time: 0) == nil, "byte \(index)")
      #expect(LearnedMemory(Array(bytes[..<index]), at: .zero, time: 0) == nil, "cut at \(index)")
    }
    for text in ["", "\n\n\n", "dormouse memory 1\n{}\ncrc32c 00000000\n"] {
      #expect(LearnedMemory(Array(text.utf8), at: .zero, time: 0) == nil)
    }
  }
}

@Suite("The keeper of what was learned") struct LearnedMemoryKeeperTests {
  private final class Disk {
    var written: [LearnedMemory] = []
    let answers = Pending<String?>()
  }

  private final class Exits { var all: [String: [ExitRecord]] = [:] }

  private let world = SenseWorld()
  private let scratch: Scratch
  private let disk = Disk()
  private let exits = Exits()

  init() throws { scratch = try Scratch() }

  private var path: String { scratch.path + "/memory" }

  private func keeper(_ path: String?) -> LearnedMemoryKeeper {
    let keeper = LearnedMemoryKeeper(path: path, world.timers) { [disk] _, memory, _, then in
      disk.written.append(memory)
      disk.answers.add(then)
    }
    keeper.connect(world.driver, world.workers) { [exits] in exits.all[$0.name] }
    return keeper
  }

  private func exit(_ at: Int64) -> ExitRecord {
    ExitRecord(at: at, why: "exited with status 1", status: .exited(1), footprint: .zero)
  }

  @Test func `Learned facts that changed are written every 30 s at most, and at the end`() throws {
    try world.add()
    let keeper = keeper(path)
    exits.all["web"] = [exit(1)]
    keeper.saveWhenDue()
    world.timers.advance(by: .seconds(29))
    keeper.saveWhenDue()
    #expect(disk.written.isEmpty)
    world.timers.advance(by: .seconds(1))
    keeper.saveWhenDue()
    #expect(disk.written.map(\.exits) == [["web": [exit(1)]]])
    disk.answers.answer(nil)
    world.timers.advance(by: .seconds(30))
    keeper.saveWhenDue()
    #expect(disk.written.count == 1, "nothing has changed")
    exits.all["web"]?.append(exit(2))
    keeper.save()
    #expect(disk.written.count == 2 && disk.written[1].exits["web"]?.count == 2)
  }

  @Test func `Learned facts that couldn't be written are written again later`() throws {
    try world.add()
    let keeper = keeper(path)
    exits.all["web"] = [exit(1)]
    world.timers.advance(by: .seconds(30))
    keeper.saveWhenDue()
    disk.answers.answer("no space left")
    keeper.saveWhenDue()
    #expect(disk.written.count == 1, "it isn't due")
    world.timers.advance(by: .seconds(30))
    keeper.saveWhenDue()
    #expect(disk.written.count == 2)
    disk.answers.answer(nil)
    world.timers.advance(by: .seconds(30))
    keeper.saveWhenDue()
    #expect(disk.written.count == 2)
  }

  @Test func `On a disk that doesn't answer, later changes are written in their turn`() throws {
    try world.add()
    let keeper = keeper(path)
    exits.all["web"] = [exit(1)]
    keeper.save()
    exits.all["web"] = [exit(1), exit(2)]
    keeper.save()
    #expect(disk.written.map { $0.exits["web"]?.count } == [1, 2] && !disk.answers.isEmpty)
  }

  @Test func `Exits of removed workers are kept, and used where no newer ones are known`() throws {
    var memory = LearnedMemory()
    memory.savedAt = Int64(time(nil))
    memory.exits = ["web": [exit(1)], "gone": [exit(2)]]
    try scratch.write("memory", try memory.encoded(at: world.timers.now))
    try world.add()
    let keeper = keeper(path)
    #expect(keeper.rememberedExits(of: WorkerID("web")) == [exit(1)])
    exits.all["web"] = [exit(3)]
    #expect(keeper.rememberedExits(of: WorkerID("web")) == [exit(3)])
    #expect(keeper.rememberedExits(of: WorkerID("unknown")) == [])
    keeper.save()
    #expect(disk.written.first?.exits == ["web": [exit(3)], "gone": [exit(2)]])
  }

  @Test func `Of more than a thousand workers those with the oldest exit are dropped`() throws {
    let keeper = keeper(path)
    for number in 0...LearnedMemory.maxWorkers {
      let name = "w\(number)"
      try world.add(name, .terminated)
      exits.all[name] = [exit(Int64(number))]
    }
    keeper.save()
    let kept = try #require(disk.written.first).exits
    #expect(kept.count == LearnedMemory.maxWorkers && kept["w0"] == nil && kept["w1"] != nil)
  }

  @Test func `A wrapper keeps no learned facts`() throws {
    try world.add()
    let keeper = keeper(nil)
    exits.all["web"] = [exit(1)]
    world.timers.advance(by: .seconds(100))
    keeper.saveWhenDue()
    keeper.save()
    #expect(disk.written.isEmpty && keeper.consumeLearned() == Learned())
    #expect(keeper.rememberedExits(of: WorkerID("web")) == [exit(1)])
  }
}
