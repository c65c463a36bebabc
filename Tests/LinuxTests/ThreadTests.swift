import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

@Suite struct `The daemon's threads` {
  private static func isMapped(_ address: UInt) -> Bool {
    var resident: UInt8 = 0
    let page = address & ~UInt(sysconf(Int32(_SC_PAGESIZE)) - 1)
    return mincore(UnsafeMutableRawPointer(bitPattern: page), 1, &resident) == 0
  }

  @Test func `Ended threads leave no stack behind`() throws {
    let release = OneTimeEvent()
    let stacks = Mutex<[UInt]>([])
    // The number of stacks is less than glibc would keep.
    let count = 64
    for _ in 0..<count {
      let isStarted = Thread.start(name: "test") {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { bytes in
          stacks.withLock { $0.append(UInt(bitPattern: bytes.baseAddress)) }
        }
        release.wait()
      }
      #expect(isStarted)
    }
    #expect(try eventually { stacks.withLock { $0.count } == count })
    let addresses = stacks.withLock { $0 }
    #expect(addresses.allSatisfy(Self.isMapped))
    release.raise()
    // Threads of other tests may have got some of the addresses.
    #expect(try eventually { addresses.count(where: Self.isMapped) < count / 2 })
  }

  @Test func `A thread that begins apart may run on all processors afterwards`() throws {
    @Sendable func allowed(_ path: String) -> Substring? {
      (try? readText(path))?.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list") }
    }
    let result = Mutex<Substring?>(nil)
    let isStarted = Thread.start(name: "test", apart: true) {
      result.withLock { $0 = allowed("/proc/thread-self/status") }
    }
    #expect(isStarted)
    #expect(try eventually { result.withLock { $0 } != nil })
    #expect(result.withLock { $0 } == allowed("/proc/thread-self/status"))
  }

  @Test func `The daemon's threads have all signals blocked`() throws {
    let result = Mutex<Bool?>(nil)
    let isStarted = Thread.start(name: "test") {
      var mask = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &mask)
      let blocked = [SIGTERM, SIGCHLD, SIGUSR1].allSatisfy { sigismember(&mask, $0) == 1 }
      result.withLock { $0 = blocked }
    }
    #expect(isStarted)
    #expect(try eventually { result.withLock { $0 } != nil })
    #expect(result.withLock { $0 } == true)
  }
}
