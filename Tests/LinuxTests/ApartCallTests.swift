import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

/// Calls that may wait for a lock, on a thread without other descriptors.
struct ApartCallTests {
  @Test func `A call on another thread has the result of the same call here`() throws {
    let ends = try Descriptor.pipe()
    try ends.writing.writeAll("four")
    #expect(ends.reading.apart { $0.unreadBytes } == 4)
    #expect(ends.reading.unreadBytes == 4)
    let (socket, _) = try Descriptor.socketPair(.stream)
    let facts = try SocketFacts.read(socket)
    #expect(socket.apart { try? SocketFacts.read($0) } == facts)
  }

  @Test func `The thread of a call that doesn't return has the call's descriptor only`() throws {
    let ends = try Descriptor.pipe()
    let (wait, ended) = (Semaphore(), Semaphore())
    let entered = LateResult<[String]>()
    let result = ends.reading.apart(within: .milliseconds(200)) { copy -> Int? in
      entered.set([readLink("/proc/thread-self") ?? "", "\(copy.raw)"])
      wait.wait()
      defer { ended.signal() }
      return 1
    }
    #expect(result == nil)
    // On a busy machine the thread may begin only now.
    var seen: [String]?
    #expect(
      try eventually {
        seen = entered.consume()
        return seen != nil
      })
    let thread = try #require(seen)
    #expect(try listDirectory("/proc/\(thread[0])/fd") == [thread[1]])
    wait.signal()
    ended.wait()
    #expect(ends.reading.apart { $0.unreadBytes } == 0)
  }

  private final class Mistakes: Sendable { let count = Atomic(0) }

  @Test("A call whose caller has given up isn't made on another file with the descriptor's number")
  func givenUp() throws {
    let mistakes = Mistakes()
    let other = try Descriptor.pipe()
    for _ in 0..<100 {
      let ends = try Descriptor.pipe()
      try ends.writing.writeAll("four")
      let result = ends.reading.apart(within: .zero) { copy -> Int? in
        if copy.unreadBytes != 4 { mistakes.count.add(1, ordering: .relaxed) }
        return 1
      }
      // This is done before the thread has begun, nearly always.
      if result == nil { _ = try systemCall("dup2") { dup2(other.reading.raw, ends.reading.raw) } }
    }
    let haveEnded = try eventually {
      try listDirectory("/proc/self/task").allSatisfy {
        // A thread that has ended has no name.
        (try? readText("/proc/self/task/\($0)/comm"))?.hasPrefix("dormouse-apart") != true
      }
    }
    #expect(haveEnded)
    #expect(mistakes.count.load(ordering: .relaxed) == 0)
  }
}
