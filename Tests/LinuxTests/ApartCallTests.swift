import Glibc
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
}
