import Policy
import TestSupport
import Testing

@testable import Lifecycle

private let old = WorkerID("old")

@Suite("The search for a worker to hibernate under pressure")
struct SleeperSearchTests {
  private func reading(images: Int64 = 0, written: Int64 = 0) -> DiskReading {
    DiskReading(
      total: .megabytes(1000), free: .megabytes(900), images: .megabytes(images),
      writtenToday: .megabytes(written))
  }

  /// A world with suspended workers of these sizes, in MB, and a ladder that only hibernates.
  private func world(_ sizes: [Int64]) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.after = nil
    policy.hibernate.cooldown = .zero
    policy.hibernate.disk.budget = .megabytes(100)
    policy.hibernate.disk.minFreePercent = 10
    policy.hibernate.disk.dailyWrites = .megabytes(500)
    policy.ladder = Ladder(warning: [.hibernate], urgent: [.hibernate], critical: [.hibernate])
    var world = World(policy)
    for size in sizes {
      let worker = WorkerID("w\(size)")
      world.add(worker, size: .megabytes(size), in: .suspended)
    }
    return world
  }

  @Test("Where the disk's writes are used up, an event asks only the worker that it changes")
  func usedUp() {
    var world = world(Array(7..<15))
    world.send(.disk(reading(written: 495)))
    #expect(world.read(available: 120).deeds.isEmpty)
    #expect(world.engine.workers.sleepers.unexamined.isEmpty)
    #expect(world.engine.workers.sleepers.withoutRoom.first?.key == .megabytes(7))

    // The disk has no room for these images either.
    world.send(.disk(reading(images: 3, written: 496)))
    world.send(.footprint(WorkerID("w12"), .megabytes(6)))
    #expect(world.read(available: 119).deeds.isEmpty)
    #expect(world.engine.workers.sleepers.unexamined.isEmpty)
    #expect(world.engine.workers.sleepers.withoutRoom.first?.key == .megabytes(6))

    // The disk has room for that worker's image now.
    #expect(world.send(.disk(reading(images: 3, written: 494))).deeds == ["hibernate w12"])
  }

  @Test func `When the disk has room again, the largest worker that fits is hibernated`() {
    var world = world([5, 8, 12, 14])
    world.send(.disk(reading(images: 97)))
    #expect(world.read(available: 146).deeds.isEmpty)
    #expect(world.send(.disk(reading(images: 90))).deeds == ["hibernate w8"])
    world.send(.hibernated(WorkerID("w8"), world.hibernation(WorkerID("w8"))))
    world.send(.disk(reading(images: 60)))
    #expect(world.pass(.milliseconds(1500)).deeds == ["hibernate w14"])
  }

  @Test func `No image is removed for room where the day's writes are used up`() {
    var world = world([8])
    world.add(old, in: .hibernated)
    world.pass(.seconds(86400))
    world.send(.disk(reading(images: 98, written: 498)))
    #expect(world.read(available: 120).deeds.isEmpty)
    #expect(world.send(.disk(reading(images: 93))).deeds == ["kill old"])
  }

  @Test("A worker whose resume was too slow is asked again when resumes have become quicker")
  func slow() {
    let (web, mail) = (SlotNumber.web, SlotNumber.mail)
    var verdicts = SleeperVerdicts()
    for slot in [web, mail] { verdicts.forget(slot, isSleeper: true) }
    verdicts.set(.slow(highest: 0.5), of: web)
    verdicts.set(.measuring, of: mail)
    verdicts.reconsider(room: .zero, ResumeRate())
    #expect(verdicts.unexamined.isEmpty)
    var rate = ResumeRate()
    rate.learn(.milliseconds(8), .megabytes(20))
    verdicts.reconsider(room: .zero, rate)
    #expect(verdicts.unexamined.members == [Int32(web)])
    #expect(verdicts.measuring.members == [Int32(mail)])
    verdicts.forget(mail, isSleeper: false)
    #expect(verdicts.measuring.isEmpty)
  }

  @Test func `The room on the disk is the largest image that no limit of the disk refuses`() {
    var random = TestRandom()
    for _ in 0..<500 {
      var world = world([8])
      world.send(
        .disk(
          DiskReading(
            total: .megabytes(Bool.random(using: &random) ? 1000 : 0),
            free: .megabytes(.random(in: 0...1000, using: &random)),
            images: .megabytes(.random(in: 0...120, using: &random)),
            writtenToday: .megabytes(.random(in: 0...600, using: &random)))))
      let room = world.engine.diskRoom
      #expect(world.engine.diskObstacle(for: room) == nil)
      #expect(world.engine.diskObstacle(for: room + ByteCount(1)) != nil)
      #expect(world.state(WorkerID("w8")) == .suspended)
    }
  }

  private enum SlotNumber {
    static let web = 3
    static let mail = 9
  }

  @Test func `The heap of slots has the smallest key first, whatever was changed before`() {
    var random = TestRandom()
    var heap = SlotHeap<Int>()
    var model: [Int: Int] = [:]
    for _ in 0..<3000 {
      let slot = Int.random(in: 0..<60, using: &random)
      let key =
        Int.random(in: 0..<4, using: &random) == 0 ? nil : Int.random(in: 0..<100, using: &random)
      heap.set(slot, key)
      model[slot] = key
      #expect(heap.key(of: slot) == key)
      #expect(heap.first?.key == model.values.min())
      if let first = heap.first { #expect(model[first.slot] == first.key) }
    }
  }
}
