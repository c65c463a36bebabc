import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

@Suite struct LearningTests {
  private static func touched(_ early: Range<UInt64>, late: Range<UInt64> = 0..<0) -> TouchedPages {
    var touched = TouchedPages()
    for page in early { touched.insert(page * pageSize, hasAnswered: false) }
    for page in late { touched.insert(page * pageSize, hasAnswered: true) }
    return touched
  }

  @Test("The pages that were learned longest ago leave a full working set, and no others do")
  func eviction() {
    var set = WorkingSet()
    for start in stride(from: UInt64(0), to: 4000, by: 1000) {
      set.learn(Self.touched(start..<(start + 1000)), ofMemory: 1 << 20)
      #expect(set.pages.contains((start + 999) * pageSize))
    }
    #expect(set.pages.count == WorkingSet.limit(ofMemory: 1 << 20))
    let oldest = 4000 - UInt64(set.pages.count)
    #expect(!set.pages.contains((oldest - 1) * pageSize))
    #expect(set.pages.contains(oldest * pageSize))
  }

  @Test func `A large worker has a larger working set, but not one that prevents overlays`() {
    func megabytes(ofMemory memory: UInt64) -> Int {
      (WorkingSet.limit(ofMemory: memory) * Int(pageSize)) >> 20
    }
    #expect(megabytes(ofMemory: 0) == 8)
    #expect(megabytes(ofMemory: 48 << 20) == 12)
    #expect(megabytes(ofMemory: 300 << 20) == 16)
    #expect(megabytes(ofMemory: .max) == 16)
  }

  @Test("A worker that uses all of its memory after each answer learns what the answer needs")
  func walks() {
    var set = WorkingSet()
    for round in 0..<UInt64(20) {
      set.learn(
        Self.touched(0..<200, late: (1000 + round * 5000)..<(6000 + round * 5000)),
        ofMemory: 300 << 20)
    }
    #expect((0..<200).allSatisfy { set.pages.contains($0 * pageSize) })
    #expect(set.pages.count == 200 + WorkingSet.lateLimit)
  }

  @Test func `Each page counts once, and all of them count`() {
    var touched = Self.touched(0..<10)
    for page in UInt64(0)..<5000 { touched.insert(page * pageSize, hasAnswered: page > 8) }
    #expect(touched.count == 5000)
    #expect(touched.early.count == 10)
    #expect(touched.late.count == TouchedPages.lateLimit)
  }

  @Test func `The pages of a timer's wake aren't a working set; those of a request are`() {
    var set = WorkingSet()
    for _ in 0..<20 { set.learn(Self.touched(0..<9), ofMemory: 1 << 20) }
    #expect(!set.isLearned && set.pages.count == 9)
    set.learn(Self.touched(0..<40), ofMemory: 1 << 20)
    #expect(set.isLearned)
  }

  @Test(.needsUserfaults)
  func `A worker that has needed few pages still learns page by page, from small chunks`() throws {
    let service = HibernationService()
    let victim = try Victim(ready: "churn", "2", "4", "64", parking: .frozen)
    let (target, identity) = (victim.target, victim.process.identity)
    let path = Fixture.imagePath()
    for (pages, isFirst) in [(0, true), (9, true), (200, false)] as [(UInt64, Bool)] {
      try victim.suspend()
      let (lengths, learned) = try service.wait { (h) throws(HibernationError) in
        var set = WorkingSet()
        set.learn(Self.touched(1..<(1 + pages)), ofMemory: 1 << 20)
        h.workingSets[target.name] = [identity: set]
        _ = try h.hibernate(HibernationRequest(target, to: path, restore: .lazy))
        let lengths = try attempt(.checking) {
          try ImageReader(path: path).chunks.filter(\.isBackgroundFilled).map(\.length)
        }
        _ = try h.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
        try h.awaitFill(of: target.name)
        return (lengths, h.histories[target.name]?.lastLazy?.wasLearning)
      }
      let longest = try #require(lengths.max())
      #expect((longest <= ImageLayout.learningChunkLength) == isFirst, "\(pages): \(longest)")
      #expect(learned == isFirst, "\(pages)")
      #expect(try victim.ask("verify").hasSuffix("errors 0"))
    }
  }

  @Test(
    "A working set that is kept stays in memory, isn't in the image, and is learned no further",
    .needsUserfaults)
  func kept() throws {
    let service = HibernationService()
    let victim = try Victim(
      ready: [
        "python3", "-c",
        """
        import sys
        objects = [str(number) * 4 for number in range(200_000)]
        print("ready", flush=True)
        for line in sys.stdin: print(sum(map(len, objects[::1000])), flush=True)
        """,
      ], parking: .frozen)
    let answer = try victim.ask("sum")
    let (target, identity) = (victim.target, victim.process.identity)
    let path = Fixture.imagePath()
    // The pages that need no wait: how many of them are in memory, and how many in the image.
    var asleep: [(kept: Int64, prefetched: Int64)] = []
    var learned: [Int] = []
    for keeps in [false, false, false, true, true] {
      try service.awaitFill(of: target.name)
      try victim.suspend()
      let set = try service.wait { (h) throws(HibernationError) in
        _ = try h.hibernate(
          HibernationRequest(target, to: path, restore: .lazy, keepsWorkingSet: keeps))
        return h.workingSets[target.name]?[identity]?.pages ?? []
      }
      learned.append(set.count)
      let image = try ImageReader(path: path)
      let prefetched = image.chunks.filter { !$0.isBackgroundFilled }.flatMap(\.ranges).bytes
      asleep.append((try Footprint.measure([identity.pid]).anonymous, Int64(prefetched)))
      #expect(
        !keeps
          || image.chunks.flatMap(\.ranges).allSatisfy { $0.pages.allSatisfy { !set.contains($0) } }
      )
      try service.wait { (h) throws(HibernationError) in
        _ = try h.resume(target, from: RestingImage(path: path, .lazy(learns: true)))
      }
      #expect(try victim.ask("sum") == answer)
    }
    let (last, before) = (asleep[4], asleep[2])
    #expect(learned[2] >= WorkingSet.minLearnedPages)
    #expect(last.prefetched == 0 && before.prefetched > Int64(learned[2]) * Int64(pageSize))
    #expect(last.kept >= before.kept + Int64(learned[2]) * Int64(pageSize))
  }

  @Test("A program's first output is seen; its threads' wakes by eventfd aren't taken for it")
  func output() throws {
    let scratch = try Scratch([:])
    let mark = "\(scratch.path)/woken"
    let victim = try Victim(
      ready: [
        "python3", "-c",
        """
        import os, sys
        event = os.eventfd(0)
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(3): os.eventfd_write(event, 1)
        os.mkdir(sys.argv[1])
        sys.stdin.readline()
        print("answer", flush=True)
        sys.stdin.readline()
        """, mark,
      ])
    var output = FirstOutput(of: [victim.process.pid])
    try victim.send("wake your threads")
    let isWoken = waitUntil(Deadline(in: .seconds(60))) { fileExists(mark) }
    #expect(isWoken)
    pauseThread(for: .milliseconds(2))
    let early = output.check()
    #expect(!early)
    #expect(try victim.ask("answer") == "answer")
    pauseThread(for: .milliseconds(2))
    let late = output.check()
    #expect(late)
  }

  @Test func `A process that has ended or can't be asked has no output`() {
    for pids in [[], [Int32.max]] {
      var output = FirstOutput(of: pids)
      let isSeen = output.check()
      #expect(!isSeen)
    }
  }
}
