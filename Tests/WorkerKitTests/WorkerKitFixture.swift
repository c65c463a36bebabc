import Synchronization
import TestSupport
import Testing

@testable import WorkerKit

/// Runs `body` on this many threads at once, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async throws {
  let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
  for index in 0..<count {
    try TestThread {
      body(index)
      continuation.yield()
    }.detach()
  }
  var ended = 0
  for await _ in stream {
    ended += 1
    if ended == count { break }
  }
  if ended < count { throw TestFailure("\(ended) of \(count) threads have ended") }
}

/// A gate that opens once. Cancellation doesn't open it.
final class Gate: Sendable {
  private let waiting = Mutex<[CheckedContinuation<Void, Never>]?>([])

  func open() {
    let all = waiting.withLock { $0.take() }
    for continuation in all ?? [] { continuation.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = waiting.withLock { waiting in
        waiting?.append(continuation)
        return waiting == nil
      }
      if isOpen { continuation.resume() }
    }
  }
}

/// A list to which several threads append.
final class Log<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  func append(_ element: Element) { elements.withLock { $0.append(element) } }
  var all: [Element] { elements.withLock { $0 } }
}

/// A delegate that records the events it receives. It delays an event if a test asks for that.
final class Recorder: WorkerDelegate {
  let log = Log<WorkerEvent>()
  let deadlines = Log<ContinuousClock.Instant?>()
  let gate = Mutex<Gate?>(nil)

  private func record(_ event: WorkerEvent) async {
    await gate.withLock { $0 }?.wait()
    deadlines.append(Worker.deadline)
    log.append(event)
  }

  func didEnterBackground() async { await record(.didEnterBackground) }
  func didEnterForeground() async { await record(.didEnterForeground) }
  func didReceiveMemoryWarning(_ warning: MemoryWarning) async {
    await record(.didReceiveMemoryWarning(warning))
  }
  func willSuspend() async { await record(.willSuspend) }
  func didResume(_ resumption: Resumption) async { await record(.didResume(resumption)) }
  func willTerminate(reason: String) async { await record(.willTerminate(reason: reason)) }
  func pressureChanged(_ level: PressureLevel) async { await record(.pressureChanged(level)) }
}
