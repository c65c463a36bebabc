import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite("Jobs about workers") struct JobPoolTests {
  private final class Notes: Sendable {
    private let list = Mutex<[String]>([])
    func add(_ text: String) { list.withLock { $0.append(text) } }
    var all: [String] { list.withLock { $0 } }

    func wait(for count: Int) -> Bool {
      let deadline = Deadline(in: .seconds(60))
      while all.count < count, !deadline.hasPassed { usleep(1000) }
      return all.count >= count
    }
  }

  @Test("Waking one worker doesn't wait for the freezing of others, even if many of those hang")
  func urgent() {
    let pool = JobPool(name: "test", maxOrdinary: 2, urgentReserve: 1)
    let (release, notes) = (OneTimeEvent(), Notes())
    for name in ["a", "b", "c", "d"] { pool.submit(about: name) { release.wait() } }
    pool.submit(about: "e", isUrgent: true) { notes.add("woken") }
    #expect(notes.wait(for: 1))
    release.raise()
  }

  @Test(
    "A job after all others is performed by its caller if there are none, and otherwise after them")
  func afterAll() {
    let pool = JobPool(name: "test", maxOrdinary: 1, urgentReserve: 1)
    let (release, notes) = (OneTimeEvent(), Notes())
    pool.performAfterAll(about: "a") { notes.add("alone") }
    #expect(notes.all == ["alone"])
    pool.submit(about: "a") {
      release.wait()
      notes.add("before")
    }
    pool.performAfterAll(about: "a") { notes.add("behind") }
    #expect(notes.all == ["alone"])
    release.raise()
    #expect(notes.wait(for: 3))
    #expect(notes.all == ["alone", "before", "behind"])
  }

  @Test func `Jobs about one worker keep their order, urgent ones too`() {
    let pool = JobPool(name: "test", maxOrdinary: 4, urgentReserve: 2)
    let (release, notes) = (OneTimeEvent(), Notes())
    pool.submit(about: "a") { release.wait() }
    for number in 0..<50 {
      pool.submit(about: "a", isUrgent: number % 7 == 0) { notes.add("\(number)") }
    }
    release.raise()
    #expect(notes.wait(for: 50))
    #expect(notes.all == (0..<50).map { "\($0)" })
  }

  @Test func `Jobs about different workers run in parallel`() {
    let pool = JobPool(name: "test", maxOrdinary: 2)
    let (first, second, notes) = (OneTimeEvent(), OneTimeEvent(), Notes())
    pool.submit(about: "a") {
      first.raise()
      second.wait()
      notes.add("a")
    }
    pool.submit(about: "b") {
      first.wait()
      second.raise()
      notes.add("b")
    }
    #expect(notes.wait(for: 2))
  }

  @Test("A job doesn't wait for a hanging one that the only idle thread hasn't claimed yet")
  func spokenFor() throws {
    let release = OneTimeEvent()
    for _ in 0..<20 {
      let (pool, notes) = (JobPool(name: "test", maxOrdinary: 2), Notes())
      pool.submit(about: "first") { notes.add("first") }
      #expect(notes.wait(for: 1))
      try #require(eventually { pool.idleThreads == 1 })
      pool.submit(about: "a") { release.wait() }
      pool.submit(about: "b") { notes.add("b") }
      guard notes.wait(for: 2) else {
        Issue.record("b waits behind a")
        break
      }
    }
    release.raise()
  }

  @Test func `Threads that aren't needed end although a short job comes every moment`() throws {
    let pool = JobPool(name: "test", maxOrdinary: 8, endsAfter: .milliseconds(200))
    let (release, notes) = (OneTimeEvent(), Notes())
    for number in 0..<8 {
      pool.submit(about: "\(number)") {
        notes.add("begun")
        release.wait()
      }
    }
    #expect(notes.wait(for: 8))
    release.raise()
    let isOne = try eventually {
      pool.submit(about: "short") {}
      return pool.threads == 1
    }
    #expect(isOne)
  }

  @Test func `An urgent job makes earlier jobs about the same worker urgent`() {
    let pool = JobPool(name: "test", maxOrdinary: 1, urgentReserve: 1)
    let (release, notes) = (OneTimeEvent(), Notes())
    pool.submit(about: "a") { release.wait() }
    pool.submit(about: "b") { notes.add("freeze") }
    pool.submit(about: "b", isUrgent: true) { notes.add("thaw") }
    #expect(notes.wait(for: 2))
    #expect(notes.all == ["freeze", "thaw"])
    release.raise()
  }
}

@Suite("Closing descriptors of other processes") struct CloserTests {
  private func makeListener() throws -> Descriptor {
    let listener = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    var small: Int32 = 4096
    setsockopt(listener.raw, SOL_SOCKET, SO_RCVBUF, &small, 4)
    try #require(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    try #require(listen(listener.raw, 16) == 0)
    return listener
  }

  /// Makes a socket whose last close waits for 20 s, or until the listener is closed.
  private func lingeringSocket(to listener: Descriptor) throws -> Int32 {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(withLoopback(localPort(of: listener.raw)) { connect(raw, $0, $1) } == 0)
    let block = [UInt8](repeating: 0, count: 65536)
    while send(raw, block, block.count, Int32(MSG_DONTWAIT)) > 0 {}
    var option = linger(l_onoff: 1, l_linger: 120)
    setsockopt(raw, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    return raw
  }

  @Test func `The last close of a socket with SO_LINGER blocks no caller`() throws {
    let listener = try makeListener()
    let raw = try lingeringSocket(to: listener)
    let start = ContinuousClock.now
    do {
      let descriptor = Descriptor(foreign: raw)
      withExtendedLifetime(descriptor) {}
    }
    #expect(ContinuousClock.now - start < .seconds(10))
  }

  @Test("Sent descriptors whose last close waits don't delay the closing of other descriptors")
  func received() throws {
    let listener = try makeListener()
    let (sender, receiver) = try Descriptor.socketPair(.stream)
    var byte: [UInt8] = [1]
    // These are more than a closer has threads.
    for _ in 0..<10 {
      let raw = try lingeringSocket(to: listener)
      #expect(clinux_send_with_descriptor(sender.raw, byte, 1, raw) == 1)
      close(raw)
      let reception = try byte.withUnsafeMutableBytes {
        try Reception.receive(from: receiver, into: $0)
      }
      #expect(reception?.passed.count == 1)
    }
    var ends: [Int32] = [-1, -1]
    try #require(clinux_pipe(&ends) == 0)
    let reading = Descriptor(owning: ends[0])
    do {
      let descriptor = Descriptor(foreign: ends[1])
      withExtendedLifetime(descriptor) {}
    }
    // The reading end has no writer any more.
    #expect(try pollDescriptor(reading.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    withExtendedLifetime(listener) {}
  }
}
