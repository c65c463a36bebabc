import CLinux
import Glibc
import Synchronization
import Testing

@testable import Linux

/// The kernel's records of writes, for memory of this process.
@Suite(.serialized, .enabled(if: clinux_try_tracking() == 1, "this kernel can't track writes"))
struct WriteTrackerTests {
  private static let pages = 16
  private static let size = Int(pageSize)

  private let tracker: WriteTracker
  private let map: PageMap
  /// The address is in the middle of unused addresses, so that nothing else is mapped beside it.
  private let area: UnsafeMutableRawPointer
  private let memory: UnsafeMutableRawPointer

  init() throws {
    let descriptor = Descriptor(owning: try shim("userfaultfd") { clinux_track_open() })
    tracker = try WriteTracker(pid: getpid(), descriptor: descriptor)
    map = try PageMap(pid: getpid())
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    area = try #require(mmap(nil, 64 * Self.size, PROT_NONE, flags, -1, 0))
    memory = area + 16 * Self.size
    try mapAgain(memory)
    memset(memory, 1, Self.pages * Self.size)
  }

  private func mapAgain(_ at: UnsafeMutableRawPointer) throws {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
    let got = mmap(at, Self.pages * Self.size, PROT_READ | PROT_WRITE, flags, -1, 0)
    try #require(got == at)
  }

  private func page() throws -> UnsafeMutableRawPointer {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS
    return try #require(mmap(nil, Self.size, PROT_READ | PROT_WRITE, flags, -1, 0))
  }

  private func range(_ at: UnsafeMutableRawPointer) -> PageRange {
    PageRange(
      address: UInt64(UInt(bitPattern: at)), length: UInt64(Self.pages * Self.size))
  }

  /// Returns the numbers of the pages that haven't been written; `nil` if they aren't known.
  private func unwritten(_ at: UnsafeMutableRawPointer? = nil) throws -> [Int]? {
    let start = at ?? memory
    return try map.unwrittenPages(in: range(start))?.flatMap { run in
      run.pages.map {
        Int($0 - UInt64(UInt(bitPattern: start))) / Self.size
      }
    }
  }

  private func arm() throws {
    try tracker.register(range(memory))
    #expect(try map.protect(range(memory)))
    #expect(try unwritten() == Array(0..<Self.pages))
  }

  @Test func `Writes by any kind of call are recorded, and reads aren't`() throws {
    defer { munmap(area, 64 * Self.size) }
    #expect(try unwritten() == nil, "it isn't tracked yet")
    #expect(try map.protect(range(memory)) == false)
    try arm()
    (memory + 3 * Self.size).storeBytes(of: 9, as: UInt8.self)
    #expect((memory + 4 * Self.size).load(as: UInt8.self) == 1)
    let file = try ProcessMemory(pid: getpid())
    func at(_ page: Int) -> UInt64 { UInt64(UInt(bitPattern: memory + page * Self.size)) }
    try file.writeBytes([7], at: at(5))
    _ = try file.readBytes(at: at(6), count: 100)
    var byte: UInt8 = 5
    try file.write([PageRange(address: at(7), length: 1)], from: &byte)
    let zero = try Descriptor.open("/dev/zero")
    _ = read(zero.raw, memory + 8 * Self.size, 100)
    // A write of the same content counts too.
    (memory + 9 * Self.size).storeBytes(of: 1, as: UInt8.self)
    #expect(try unwritten() == [0, 1, 2, 4, 6, 10, 11, 12, 13, 14, 15])
    #expect(try map.protect(range(memory)))
    #expect(try unwritten() == Array(0..<Self.pages))
  }

  @Test func `A change of page protection doesn't hide a write`() throws {
    defer { munmap(area, 64 * Self.size) }
    try arm()
    mprotect(memory, Self.pages * Self.size, PROT_READ)
    let file = try ProcessMemory(pid: getpid())
    try file.writeBytes([7], at: UInt64(UInt(bitPattern: memory)))
    mprotect(memory, Self.pages * Self.size, PROT_NONE)
    mprotect(memory, Self.pages * Self.size, PROT_READ | PROT_WRITE)
    #expect(try unwritten() == Array(1..<Self.pages))
    (memory + Self.size).storeBytes(of: 9, as: UInt8.self)
    #expect(try unwritten() == Array(2..<Self.pages))
  }

  @Test("Dropped pages don't count as unwritten, before they are used again or after")
  func givenUp() throws {
    defer { munmap(area, 64 * Self.size) }
    try arm()
    madvise(memory, 2 * Self.size, MADV_DONTNEED)
    #expect(try unwritten() == Array(2..<Self.pages))
    #expect(memory.load(as: UInt8.self) == 0)
    #expect(try unwritten() == Array(2..<Self.pages))
    memory.storeBytes(of: 1, as: UInt8.self)
    (memory + Self.size).storeBytes(of: 1, as: UInt8.self)
    #expect(try unwritten() == Array(2..<Self.pages))
  }

  @Test("Unwritten pages aren't known for a new mapping at the same address, or for moved memory")
  func otherMappings() throws {
    defer { munmap(area, 64 * Self.size) }
    try arm()
    try mapAgain(memory)
    memset(memory, 1, Self.pages * Self.size)
    #expect(try unwritten() == nil)
    // Registering alone proves nothing about earlier writes.
    try tracker.register(range(memory))
    #expect(try unwritten() == [])
    try arm()
    let target = area + 40 * Self.size
    let length = Self.pages * Self.size
    let moved = clinux_move_mapping(memory, UInt64(length), target)
    try #require(moved == 0)
    #expect(try unwritten(target) == nil)
    try tracker.register(range(target))
    #expect(try unwritten(target) == [])
  }

  /// A trial that unmapped a place that it doesn't have any more would unmap another thread's
  /// mapping, about once in a thousand trials.
  @Test func `The trial doesn't unmap what another thread maps meanwhile`() throws {
    munmap(area, 64 * Self.size)
    // The gaps in this process's address space: a page would come to one of them.
    let pages = try (0..<512).map { _ in try page() }
    defer { for page in pages { munmap(page, Self.size) } }
    let isOver = Atomic(false)
    let done = Semaphore()
    let isStarted = Thread.start(name: "trials") {
      for _ in 0..<4000 where !isOver.load(ordering: .relaxed) { _ = clinux_try_tracking() }
      isOver.store(true, ordering: .relaxed)
      done.signal()
    }
    try #require(isStarted)
    var lost = 0
    while !isOver.load(ordering: .relaxed) {
      let page = try page()
      // It fails for addresses at which nothing is mapped.
      for _ in 0..<20 where msync(page, Self.size, MS_ASYNC) != 0 { lost += 1 }
      munmap(page, Self.size)
      if lost > 0 { isOver.store(true, ordering: .relaxed) }
    }
    done.wait()
    #expect(lost == 0)
  }

  @Test func `Huge pages are split at the first tracked write`() throws {
    defer { munmap(area, 64 * Self.size) }
    let huge = 2 << 20
    let wide = try #require(
      mmap(nil, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    defer { munmap(wide, 2 * huge) }
    let start = (UInt(bitPattern: wide) + UInt(huge) - 1) & ~(UInt(huge) - 1)
    let aligned = try #require(UnsafeMutableRawPointer(bitPattern: start))
    madvise(aligned, huge, 14)  // MADV_HUGEPAGE
    memset(aligned, 1, huge)
    let range = PageRange(address: UInt64(start), length: UInt64(huge))
    try tracker.register(range)
    #expect(try map.protect(range))
    (aligned + 5 * Self.size).storeBytes(of: 9, as: UInt8.self)
    madvise(aligned, huge, 25)  // MADV_COLLAPSE: must not make it one page that looks unwritten
    let unwritten = try #require(try map.unwrittenPages(in: range))
    #expect(
      !unwritten.contains {
        $0.address <= UInt64(start) + 5 * pageSize
          && UInt64(start) + 5 * pageSize < $0.address + $0.length
      })
  }
}
