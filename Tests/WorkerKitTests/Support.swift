import Glibc
import Synchronization
import Testing

@testable import WorkerKit

/// Starts a thread that isn't one of those that tasks run on.
func startThread(_ run: @escaping @Sendable () -> Void) throws {
  final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
  let body = Unmanaged.passRetained(Body(run))
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { argument in
      if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
      return nil
    }, body.toOpaque())
  guard code == 0 else { throw TestFailure("pthread_create: \(code)") }
  pthread_detach(thread)
}

/// Runs `body` on so many threads at once, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async throws {
  let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
  for index in 0..<count {
    try startThread {
      body(index)
      continuation.yield()
    }
  }
  var ended = 0
  for await _ in stream {
    ended += 1
    if ended == count { break }
  }
  if ended < count { throw TestFailure("\(ended) of \(count) threads have ended") }
}

/// For what has no event. The test's time limit ends it.
func eventually(_ condition: () throws -> Bool) async throws {
  while try !condition() { try await Task.sleep(for: .milliseconds(1)) }
}

/// Opens once. Cancellation doesn't open it.
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

/// A list that several threads write to.
final class Log<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])
  func append(_ element: Element) { elements.withLock { $0.append(element) } }
  var all: [Element] { elements.withLock { $0 } }
}

/// Writes down what it hears, and holds events up where it is asked to.
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

/// Seeded, so that a failure comes again.
struct SplitMix64: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
