import CLinux
import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite struct WorkQueueTests {
  private final class Held: Sendable {}

  @Test func `Values that the lanes of a work queue captured are released when the lanes end`() {
    for _ in 0..<500 {
      let sum = Mutex(0)
      weak var remembered: Held?
      do {
        let held = Held()
        remembered = held
        inParallel(count: 8, lanes: 4) { next in
          while let index = next() { withExtendedLifetime(held) { sum.withLock { $0 += index } } }
        }
      }
      #expect(remembered == nil)
      #expect(sum.withLock { $0 } == 28)
    }
  }

  @Test func `Urgent jobs come first, and none overtakes one about the same subject`() {
    let order = Mutex<[Int]>([])
    func job(_ number: Int) -> WorkQueue.Job { { order.withLock { $0.append(number) } } }
    let queue = WorkQueue(name: "test")
    let gate = Semaphore()
    queue.submit { gate.wait() }
    queue.submit(about: "a", job(1))
    queue.submit(about: "b", job(2))
    queue.submit(about: "c", job(3))
    queue.submit(about: "d", isUrgent: true, job(4))
    queue.submit(about: "c", isUrgent: true, job(5))
    queue.prioritize("b")
    queue.prioritize("unknown")
    queue.submit(job(6))
    gate.signal()
    queue.perform {}
    #expect(order.withLock { $0 } == [4, 3, 5, 2, 1, 6])
  }

  private final class Permission: Sendable {
    let isGiven = Atomic(false)
    let questions = Atomic(0)

    func ask() -> Bool {
      questions.add(1, ordering: .relaxed)
      return isGiven.load(ordering: .relaxed)
    }
  }

  @Test(
    "A queue that may leave its thread has none after a while, and its next job gets another one")
  func leaves() throws {
    let permission = Permission()
    let queue = WorkQueue(name: "test", mayEndThread: { permission.ask() })
    #expect(!queue.hasThread)
    let first = queue.perform { clinux_thread_id() }
    // Its jobs have the same thread while it may not release it.
    #expect(try eventually { permission.questions.load(ordering: .relaxed) >= 1 })
    #expect(queue.perform { clinux_thread_id() } == first)
    permission.isGiven.store(true, ordering: .relaxed)
    #expect(try eventually { !queue.hasThread })
    #expect(queue.perform { 7 } == 7)
  }

  @Test("A queue releases its thread only after its idle task has nothing left to do")
  func leavesAfterIdleTask() throws {
    let permission = Permission()
    permission.isGiven.store(true, ordering: .relaxed)
    let idleTask = Permission()
    let queue = WorkQueue(
      name: "test", idleTask: { idleTask.ask() ? nil : .milliseconds(20) },
      mayEndThread: { permission.ask() })
    queue.perform {}
    // This is longer than a queue waits before it releases its thread.
    #expect(try eventually { idleTask.questions.load(ordering: .relaxed) > 150 })
    #expect(queue.hasThread && permission.questions.load(ordering: .relaxed) == 0)
    idleTask.isGiven.store(true, ordering: .relaxed)
    #expect(try eventually { !queue.hasThread })
  }

  @Test func `As many of several queues keep their threads as are configured to stay`() throws {
    let budget = ThreadBudget(minimum: 2)
    let queues = (0..<5).map { _ in
      WorkQueue(name: "test", mayEndThread: { true }, threadBudget: budget)
    }
    for round in 0..<2 {
      for queue in queues { queue.perform {} }
      #expect(try eventually { queues.count { $0.hasThread } == 2 }, "\(round)")
      // If further threads ended, the count would be two for a moment only.
      pauseThread(for: .milliseconds(200))
      #expect(queues.count { $0.hasThread } == 2, "\(round)")
    }
  }

  @Test("If no thread can be started, a spare one performs the jobs of several queues")
  func noThread() throws {
    let backlogs = (0..<3).map { _ in
      QueueBacklog(name: "test", mayEndThread: { true }, start: { _, _ in false })
    }
    let done = Semaphore()
    for _ in 0..<2 {
      for backlog in backlogs { backlog.append({ done.signal() }, about: nil, isUrgent: false) }
    }
    for _ in 0..<6 { #expect(done.wait(within: .seconds(60))) }
    // The spare thread is free again.
    #expect(try eventually { backlogs.allSatisfy { !$0.hasThread } })
    for backlog in backlogs { backlog.append({ done.signal() }, about: nil, isUrgent: false) }
    for _ in 0..<3 { #expect(done.wait(within: .seconds(60))) }
  }

  @Test(
    "A queue that waits for the spare thread gets one of its own when that can be started again")
  func threadLater() throws {
    let permission = Permission()
    let (begun, gate) = (Semaphore(), Semaphore())
    let busy = QueueBacklog(name: "test", mayEndThread: { true }, start: { _, _ in false })
    let blockingJob: WorkQueue.Job = {
      begun.signal()
      gate.wait()
    }
    busy.append(blockingJob, about: nil, isUrgent: false)
    begun.wait()
    let backlog = QueueBacklog(
      name: "test", mayEndThread: { true },
      start: { name, body in
        permission.isGiven.load(ordering: .relaxed) && Thread.start(name: name, body)
      })
    let done = Semaphore()
    backlog.append({ done.signal() }, about: nil, isUrgent: true)
    #expect(!done.wait(within: .milliseconds(100)))
    permission.isGiven.store(true, ordering: .relaxed)
    for _ in 0..<3 { backlog.append({ done.signal() }, about: nil, isUrgent: false) }
    for _ in 0..<4 { #expect(done.wait(within: .seconds(60))) }
    gate.signal()
    #expect(try eventually { !backlog.hasThread && !busy.hasThread })
  }

  @Test func `Jobs that are submitted while the queue releases its thread are all performed`() {
    // The spare thread leaves at once, so each job may be submitted at that moment.
    let backlog = QueueBacklog(name: "test", mayEndThread: { true }, start: { _, _ in false })
    let done = Semaphore()
    for round in 0..<1000 {
      let jobs = 1 + round % 3
      for _ in 0..<jobs { backlog.append({ done.signal() }, about: nil, isUrgent: false) }
      for _ in 0..<jobs { #expect(done.wait(within: .seconds(60))) }
    }
  }
}
