import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The areas that threads share with the kernel for restartable sequences. A kernel may end a
/// process whose area isn't as the kernel wrote it last (Linux 7.3).
@Suite(.serialized)
struct RestartableSequencesTests {
  let service = HibernationService()

  private struct Area {
    let thread: Int32
    let address: UInt64
    var page: UInt64 { address / pageSize * pageSize }
  }

  /// Starts a program with threads. It is `nil` if the C library registers no areas.
  private func start(
    _ arguments: [String], parking: Victim.Parking
  ) throws -> (victim: Victim, areas: [Area])? {
    let victim = try Victim([try Fixture.compile("sequences")] + arguments, parking: parking)
    guard try victim.line() != "none" else {
      notTestedHere("this C library registers no areas for restartable sequences")
      return nil
    }
    let areas = try victim.ask("areas").split(separator: " ").dropFirst().map { word in
      let fields = word.split(separator: ":")
      return Area(
        thread: try #require(Int32(fields[0])),
        address: try #require(UInt64(fields[1], radix: 16)))
    }
    return (victim, areas)
  }

  @Test func `The kernel shows each thread's area, where the thread itself sees it`() throws {
    guard let (victim, areas) = try start(["3"], parking: .traced) else { return }
    try victim.suspend()
    let session = try TraceSession.seize(pid: victim.process.pid)
    defer { session.detach() }
    let ranges = try RestartableSequences(of: session).ranges
    guard KernelTrial.asTracer.showsRseq == 1 else { return #expect(ranges.isEmpty) }
    #expect(ranges.map(\.lowerBound).sorted() == areas.map(\.address).sorted())
    #expect(ranges.allSatisfy { $0.count >= 32 })
    #expect(areas.count == 4)
  }

  @Test(
    "A resume leaves what the kernel wrote last, and everything else has the worker's bytes",
    .needsCgroup)
  func untouched() throws {
    guard let (victim, areas) = try start(["6"], parking: .frozen),
      KernelTrial.asTracer.showsRseq == 1
    else { return }
    let path = try victim.sleep(service)
    let memory = try ProcessMemory(pid: victim.process.pid)
    let pages = try PageMap(pid: victim.process.pid)
    // These are values that the kernel could have written while the worker sleeps: other
    // processors, another context.
    var before: [[UInt8]] = []
    var during: [[UInt8]] = []
    for area in areas {
      #expect(
        try pages.populatedPages(from: area.page, to: area.page + pageSize)
          == [PageRange(address: area.page, length: pageSize)])
      let bytes = try memory.readBytes(at: area.address, count: 32)
      before.append(bytes)
      during.append(bytes.map { $0 ^ 0x2a })
      try memory.writeBytes(bytes.map { $0 ^ 0x2a }, at: area.address)
    }
    let target = victim.target
    _ = try service.wait { (h) throws(HibernationError) in
      try h.restoreMemory(target, from: RestingImage(path: path), run: false)
    }
    for (index, area) in areas.enumerated() {
      #expect(try memory.readBytes(at: area.address, count: 32) == during[index])
      try memory.writeBytes(before[index], at: area.address)
    }
    try victim.carryOn()
    #expect(try victim.ask("check") == "wrong 0")
  }

  static let ways: [(Victim.Parking, RestoreMode)] = Nightly.one(
    of: Victim.Parking.available.flatMap { parking in
      parking == .frozen
        ? [(parking, RestoreMode.eager), (parking, .lazy(learns: true))]
        : [(parking, RestoreMode.eager)]
    })

  @Test(
    "A worker whose threads move to other processors in its sleep continues there", arguments: ways
  )
  func moved(parking: Victim.Parking, mode: RestoreMode) throws {
    guard let (victim, _) = try start(["6"], parking: parking) else { return }
    let path = Fixture.imagePath()
    let target = victim.target
    for round in 0..<6 {
      try move(victim, to: round)
      let restore: ResumePreference = mode == .eager ? .eager : .lazy
      #expect(try victim.sleep(service, at: path, restore: restore).moved > 0)
      try move(victim, to: round + 1)
      try service.resume(target, from: RestingImage(path: path, mode))
      try #require(try victim.ask("check") == "wrong 0", "round \(round)")
      try service.awaitFill(of: target.name)
      try #require(try victim.ask("check") == "wrong 0", "round \(round), all there")
    }
  }

  /// Moves all threads to one processor. A machine without that processor leaves them on theirs.
  private func move(_ victim: Victim, to number: Int) throws {
    let processor = number % Int(onlineProcessors)
    _ = try Fixture.run([
      "sh", "-c", "taskset -apc \(processor) \(victim.process.pid) >/dev/null 2>&1",
    ])
  }

  @Test(
    "A sequence that a sleep interrupts begins again, and is never committed",
    arguments: Nightly.one(of: Victim.Parking.available))
  func interrupted(parking: Victim.Parking) throws {
    guard let (victim, _) = try start(["1", "endless"], parking: parking) else { return }
    var refusals = 0
    for _ in 0..<4 {
      let path = Fixture.imagePath()
      do {
        try victim.sleep(service, at: path)
        try victim.wake(service, from: path)
      } catch let error as HibernationError {
        // A parked thread could run before its own registers are back.
        #expect(
          error.reason == "busy: one of its threads is always inside a restartable sequence (rseq)")
        #expect(error.aftermath == .intact)
        refusals += 1
        try victim.carryOn()
      }
      let answer = try victim.ask("starts").split(separator: " ")
      let before = try #require(UInt64(answer[1]))
      #expect(answer[3] == "0", "a sequence was committed")
      // The program runs on: another thread interrupts it now and then.
      #expect(
        try eventually {
          try UInt64(victim.ask("starts").split(separator: " ")[1]) ?? 0 > before
        })
    }
    // A traced thread is refused only while it stops inside the sequence. On a busy machine one of
    // the attempts often stops it at the beginning of the sequence, and it sleeps.
    if parking == .frozen || KernelTrial.asTracer.showsRseq != 1 { #expect(refusals == 0) }
  }
}
