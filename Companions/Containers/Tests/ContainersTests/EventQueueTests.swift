import Testing

@testable import Control
@testable import KubernetesAPI
@testable import PodReports

@Suite("Few events of many happenings")
struct EventQueueTests {
  typealias Instant = ContinuousClock.Instant

  private static let pod = PodReference(namespace: "shop", name: "web", uid: "u1")

  private static func happening(_ text: String, _ reason: String = "Hibernated") -> PodOccurrence {
    PodOccurrence(reason, text, of: pod, container: "web")
  }

  private static func queue(_ limits: EventQueue.Limits = EventQueue.Limits()) -> EventQueue {
    EventQueue(node: "node-1", limits: limits) { "\($0.name).1" }
  }

  private static func next(
    _ queue: inout EventQueue, at now: Instant
  ) throws -> EventQueue.Delivery {
    guard let delivery = queue.next(at: now) else { throw Failure("nothing is sent") }
    return delivery
  }

  private static func isQuiet(_ queue: inout EventQueue, at now: Instant) -> Bool {
    queue.next(at: now) == nil
  }

  @Test(
    "The first happening is sent at once, the next ones are counted in it, with the newest message")
  func counted() throws {
    var queue = Self.queue()
    let now = Instant.now
    queue.record(Self.happening("one"), at: now, wall: 1000)
    let first = try Self.next(&queue, at: now)
    #expect(first.isNew && first.event.count == 1 && first.event.message == "one")
    queue.delivered(first, at: now)
    let isQuiet = Self.isQuiet(&queue, at: now + .seconds(60))
    #expect(isQuiet)
    for number in 2...4 { queue.record(Self.happening("\(number)"), at: now, wall: 1000) }
    let isStillQuiet = Self.isQuiet(&queue, at: now + .seconds(4))
    #expect(isStillQuiet)
    let second = try Self.next(&queue, at: now + .seconds(5))
    #expect(!second.isNew && second.event.count == 4 && second.event.message == "4")
    #expect(second.event.name == first.event.name)
  }

  @Test("A pod that sleeps and wakes each second for an hour makes two events and few requests")
  func busy() {
    var queue = Self.queue()
    let start = Instant.now
    var names: Set<String> = []
    var requests = 0
    for second in 0..<3600 {
      let now = start + .seconds(second)
      queue.record(
        Self.happening("\(second)", second % 2 == 0 ? "Hibernated" : "Woken"), at: now,
        wall: Int64(second))
      while let delivery = queue.next(at: now) {
        if delivery.isNew { names.insert(delivery.event.reason) }
        requests += 1
        queue.delivered(delivery, at: now)
      }
    }
    #expect(names.count == 2 && requests < 50, "\(requests)")
  }

  @Test("A pod that sleeps a hundred times a day reports each sleep at once, in one event")
  func hundred() throws {
    var queue = Self.queue()
    let start = Instant.now
    var counts: [Int] = []
    for number in 0..<100 {
      let now = start + .seconds(number * 864)
      queue.record(Self.happening("\(number)"), at: now, wall: Int64(number))
      let delivery = try Self.next(&queue, at: now)
      #expect(delivery.isNew == (number == 0))
      counts.append(delivery.event.count)
      queue.delivered(delivery, at: now)
    }
    #expect(counts == Array(1...100))
  }

  @Test("An event that the API has removed is made again, with a count of its own")
  func removed() throws {
    var queue = Self.queue()
    let now = Instant.now
    queue.record(Self.happening("one"), at: now, wall: 1)
    queue.delivered(try Self.next(&queue, at: now), at: now)
    queue.record(Self.happening("two"), at: now, wall: 2)
    let later = now + .seconds(60)
    queue.didDisappear(try Self.next(&queue, at: later))
    let again = try Self.next(&queue, at: later)
    #expect(again.isNew && again.event.count == 1 && again.event.first == 2)
    queue.delivered(again, at: later)
    // After an hour of silence the API's object has ended.
    let much = later + .seconds(3600)
    queue.record(Self.happening("three"), at: much, wall: 3)
    let isNew = try Self.next(&queue, at: much).isNew
    #expect(isNew)
  }

  @Test("What can't be sent for ten minutes is lost and counted, and the memory stays bounded")
  func lost() {
    var limits = EventQueue.Limits()
    limits.series = 10
    var queue = Self.queue(limits)
    let now = Instant.now
    for number in 0..<30 {
      queue.record(Self.happening("x", "Reason\(number)"), at: now, wall: Int64(number))
    }
    let early = queue.drainLost()
    #expect(early == 20)
    let isEarly = Self.isQuiet(&queue, at: now + .seconds(599))
    #expect(!isEarly)
    let isLost = Self.isQuiet(&queue, at: now + .seconds(601))
    #expect(isLost)
    let late = queue.drainLost()
    #expect(late == 10 && queue.isEmpty)
  }

  @Test("A long or unusual name of a pod makes a valid name of an event")
  func names() {
    let name = EventQueue.name(
      PodReference(
        namespace: "a", name: String(repeating: "a", count: 198) + "-.-b.c", uid: ""))
    #expect(name.utf8.count <= 253 && !name.contains("-.") && !name.contains(".."))
  }

  @Test("The daemon's events become events of the pod, with the daemon's reason and numbers")
  func wording() throws {
    var record = EventRecord(
      time: "", kind: "state", text: "idle for 5 m; 51.6 MB → 0.5 MB, image 3.4 MB, 61 ms")
    (record.from, record.to, record.freed) = ("suspended", "hibernated", 53_580_000)
    let asleep = try #require(Wording.happening(record, of: Self.pod, container: "web"))
    #expect(asleep.reason == "Hibernated" && asleep.kind == .normal)
    #expect(
      asleep.message
        == "Container web is hibernated, 51.1 MB of its memory is on disk: idle for 5 m; "
        + "51.6 MB → 0.5 MB, "
        + "image 3.4 MB, 61 ms")
    record = EventRecord(time: "", kind: "state", text: "woken by data from 10.0.0.7:4711; 12 ms")
    (record.from, record.to) = ("hibernated", "foreground")
    #expect(
      Wording.happening(record, of: Self.pod, container: "web")?.message
        == "Container web is awake: woken by data from 10.0.0.7:4711; 12 ms")
    record = EventRecord(time: "", kind: "failed", text: "can't be hibernated: it uses io_uring")
    let failed = try #require(Wording.happening(record, of: Self.pod, container: "web"))
    #expect(failed.reason == "NotHibernated" && failed.kind == .warning)
    record = EventRecord(time: "", kind: "state", text: "pressure critical")
    (record.from, record.to, record.code) = ("hibernated", "terminated", "pressure")
    #expect(Wording.happening(record, of: Self.pod, container: "web")?.reason == "Terminated")
    record.code = "exited"
    #expect(Wording.happening(record, of: Self.pod, container: "web") == nil)
    (record.to, record.from, record.code) = ("suspended", "background", "grace_over")
    #expect(Wording.happening(record, of: Self.pod, container: "web") == nil)
  }
}
