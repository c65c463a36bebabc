import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite(
  "The stacks of threads that wait for jobs",
  // The address sanitizer stores local variables elsewhere.
  .enabled(if: getenv("WORKERKIT_SANITIZED") == nil, "sanitizers bring stacks of their own"))
struct UnusedStackTests {
  /// Uses 200 KB of stack, and returns an address at its end.
  private static func useStack(from top: UInt? = nil) -> UInt {
    var local: UInt8 = 1
    return withUnsafeMutablePointer(to: &local) { pointer in
      let here = UInt(bitPattern: pointer)
      guard let top else { return useStack(from: here) }
      return top - here > 200_000 ? here : useStack(from: top)
    }
  }

  private static func isResident(_ address: UInt) -> Bool {
    let page = address / UInt(pageSize) * UInt(pageSize)
    var residency: UInt8 = 0
    return mincore(UnsafeMutableRawPointer(bitPattern: page), Int(pageSize), &residency) == 0
      && residency & 1 == 1
  }

  private func expectRelease(submit: (@escaping @Sendable () -> Void) -> Void) throws {
    let deepest = Shared<UInt?>(nil)
    submit {
      let address = Self.useStack()
      #expect(Self.isResident(address))
      deepest.value = address
    }
    #expect(try eventually { deepest.value.map { !Self.isResident($0) } ?? false })
    // The thread performs jobs as before.
    let isDone = OneTimeEvent()
    submit { isDone.raise() }
    isDone.wait()
  }

  private final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    init(_ value: Value) { state = Mutex(value) }
    var value: Value {
      get { state.withLock { $0 } }
      set { state.withLock { $0 = newValue } }
    }
  }

  @Test func `A queue's thread returns to the kernel the stack that its last job used`() throws {
    let queue = WorkQueue(name: "test")
    try expectRelease { queue.submit($0) }
  }

  @Test func `A pool's thread returns to the kernel the stack that its last job used`() throws {
    let pool = JobPool(name: "test", maxOrdinary: 1)
    try expectRelease { pool.submit(about: "a", $0) }
  }

  /// The program is `clinux_release_unused_stack` itself, with a mapping at the worst moment.
  @Test("The first thread's stack is released, and not memory that is mapped below it meanwhile")
  func firstThread() throws {
    let scratch = try Scratch()
    let program = "\(scratch.path)/first_stack"
    let compiler = try TestChild(
      "cc", "-O1", "-pthread", "-I", "\(SourceTree.root)/Sources/CLinux/include", "-o", program,
      "\(SourceTree.root)/Tests/Fixtures/first_stack.c")
    try compiler.waitForExit()
    #expect(try TestChild(program).line() == "released intact")
  }

  @Test("A queue's idle task runs as often as it requests, and not when the stack is released")
  func idleTask() throws {
    let count = Shared(0)
    let queue = WorkQueue(name: "test") {
      count.value += 1
      return count.value == 1 ? .milliseconds(10) : nil
    }
    try expectRelease { queue.submit($0) }
    // It runs after the first job, 10 ms later, and after the second job.
    #expect(try eventually { count.value >= 3 })
    #expect(count.value == 3)
  }
}
