import Synchronization
import Testing

@testable import Linux

@Suite("Semaphores") struct SemaphoreTests {
  @Test func `Each signal lets one waiting thread continue, even one that waits later`() {
    let (semaphore, done) = (Semaphore(), Semaphore())
    let passed = Mutex(0)
    semaphore.signal()
    semaphore.wait()
    let started = (0..<3).filter { _ in
      Thread.start(name: "test") {
        semaphore.wait()
        passed.withLock { $0 += 1 }
        done.signal()
      }
    }
    #expect(started.count == 3)
    for _ in started { semaphore.signal() }
    for _ in started { #expect(done.wait(within: .seconds(60))) }
    #expect(passed.withLock { $0 } == 3)
    #expect(!semaphore.wait(within: .zero))
  }

  @Test func `A wait with a limit ends after it, not before, and consumes no signal`() {
    let semaphore = Semaphore()
    let began = Clocks.monotonic
    #expect(!semaphore.wait(within: .milliseconds(30)))
    #expect(Clocks.monotonic - began >= 30_000_000)
    semaphore.signal()
    #expect(semaphore.wait(within: .seconds(60)))
    #expect(!semaphore.wait(until: Deadline(in: .zero)))
  }

  @Test func `An event that was raised lets all threads continue, within a limit and without`() {
    let event = OneTimeEvent()
    #expect(!event.wait(until: Deadline(in: .milliseconds(1))))
    event.raise()
    #expect(event.wait(until: Deadline(in: .seconds(60))))
    #expect(event.wait(until: Deadline(in: .zero)))
    event.wait()
  }
}
