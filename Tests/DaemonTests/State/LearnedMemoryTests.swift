import Lifecycle
import Policy
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
