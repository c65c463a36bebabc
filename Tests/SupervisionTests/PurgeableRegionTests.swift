import CLinux
import Glibc
import Linux
import Synchronization
import TestSupport
import Testing
import WorkerProtocol

@testable import Supervision

/// The worker's side of purgeable memory, honest or not.
final class WorkersMemory {
  static let page = Int(pageSize)
  let descriptor: Descriptor
  let mapping: UnsafeMutableRawPointer
  let size: Int
  let dataOffset: Int

  init(
    slots: Int = 8, pages: Int = 64, magic: UInt64 = PurgeableLayout.magic,
    tellSlots: UInt32? = nil,
    tellOffset: UInt32? = nil, seals: Int32 = Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW),
    fileSize: Int64? = nil
  ) throws {
    let table = PurgeableLayout.tableLength(slots: slots)
    dataOffset = (table + Self.page - 1) / Self.page * Self.page
    let size = dataOffset + pages * Self.page
    self.size = size
    descriptor = Descriptor(
      owning: try shim("memfd_create") {
        clinux_sealed_memory_file("purgeable", fileSize ?? Int64(size), seals)
      })
    mapping = try #require(
      mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.raw, 0))
    mapping.storeBytes(of: magic, as: UInt64.self)
    mapping.storeBytes(
      of: tellSlots ?? UInt32(slots), toByteOffset: PurgeableLayout.slotCountOffset,
      as: UInt32.self)
    mapping.storeBytes(
      of: tellOffset ?? UInt32(dataOffset), toByteOffset: PurgeableLayout.dataOffsetOffset,
      as: UInt32.self)
  }

  deinit { munmap(mapping, size) }

  func word(_ slot: Int) -> PurgeableWord {
    let pointer = mapping + PurgeableLayout.offset(ofSlot: slot)
    return PurgeableWord(pointer.assumingMemoryBound(to: Atomic<UInt64>.self))
  }

  func set(_ slot: Int, _ state: PurgeableState, offset: UInt64, length: UInt64) {
    let pointer = mapping + PurgeableLayout.offset(ofSlot: slot)
    pointer.storeBytes(
      of: offset, toByteOffset: PurgeableLayout.contentOffsetOffset, as: UInt64.self)
    pointer.storeBytes(
      of: length, toByteOffset: PurgeableLayout.contentLengthOffset, as: UInt64.self)
    word(slot).publish(state)
  }

  /// Fills whole pages with the slot's number plus one.
  func fill(_ slot: Int, page: Int, pages: Int, _ state: PurgeableState) {
    let offset = dataOffset + page * Self.page
    memset(mapping + offset, Int32(slot + 1), pages * Self.page)
    set(slot, state, offset: UInt64(offset), length: UInt64(pages * Self.page))
  }

  func holds(_ byte: UInt8, page: Int, pages: Int) -> Bool {
    UnsafeRawBufferPointer(
      start: mapping + dataOffset + page * Self.page, count: pages * Self.page
    ).allSatisfy { $0 == byte }
  }
}

private let volatileState = PurgeableState(generation: 7, accesses: 0)

@Suite struct PurgeableTests {
  let page = Int64(pageSize)

  @Test func `A purge takes only content that is volatile and that the worker doesn't hold`() throws
  {
    let memory = try WorkersMemory()
    memory.fill(0, page: 0, pages: 4, volatileState)
    memory.fill(1, page: 4, pages: 4, PurgeableState(generation: 1, accesses: 1))
    memory.fill(2, page: 8, pages: 4, PurgeableState(generation: 1, accesses: 0, isVolatile: false))
    memory.fill(3, page: 12, pages: 4, .unused(generation: 3))
    memory.fill(4, page: 16, pages: 4, volatileState.claimed)
    memory.fill(5, page: 20, pages: 2, volatileState)
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.volatileBytes() == 6 * page)
    #expect(region.purge() == 6 * page)
    #expect(memory.holds(0, page: 0, pages: 4))
    for (slot, start) in [(1, 4), (2, 8), (3, 12), (4, 16)] {
      #expect(memory.holds(UInt8(slot + 1), page: start, pages: 4))
    }
    #expect(memory.holds(0, page: 20, pages: 2))
    #expect(memory.word(0).state == .unused(generation: 8))
    #expect(memory.word(4).state == volatileState.claimed)
    #expect(region.volatileBytes() == 0)
    #expect(region.purge() == 0)
  }

  @Test func `A worker can't hold content of another generation`() throws {
    let memory = try WorkersMemory()
    memory.fill(0, page: 0, pages: 1, volatileState)
    #expect(!memory.word(0).retain(generation: 6))
    #expect(memory.word(0).retain(generation: 7))
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.purge() == 0)
    #expect(memory.word(0).release(generation: 7)?.isPurgeable == true)
    #expect(memory.word(0).release(generation: 7) == nil)
    #expect(region.purge() == page)
    #expect(!memory.word(0).retain(generation: 7))
  }

  @Test func `A purge stops when enough memory has been freed`() throws {
    let memory = try WorkersMemory()
    for slot in 0..<8 { memory.fill(slot, page: slot * 2, pages: 2, volatileState) }
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.purge(atMost: 0) == 0)
    #expect(region.purge(atMost: 3 * page) == 4 * page)
    #expect(region.volatileBytes() == 12 * page)
    #expect(region.purge(atMost: -1) == 0)
  }

  @Test func `A file that isn't a sealed table of slots is refused`() throws {
    func refusal(_ memory: WorkersMemory) -> PurgeableError? {
      do throws(PurgeableError) {
        _ = try PurgeableRegion(memory.descriptor)
        return nil
      } catch { return error }
    }
    #expect(refusal(try WorkersMemory(seals: Int32(CLINUX_SEAL_GROW))) == .notSealed)
    #expect(refusal(try WorkersMemory(seals: Int32(CLINUX_SEAL_SHRINK))) == .notSealed)
    #expect(refusal(try WorkersMemory(magic: 0)) == .wrongMagic)
    #expect(refusal(try WorkersMemory(tellSlots: 65_537)) == .tooManySlots(65_537))
    #expect(refusal(try WorkersMemory(tellSlots: .max)) == .tooManySlots(Int(UInt32.max)))
    for offset: UInt32 in [0, 1, UInt32(pageSize) - 1, UInt32(pageSize) + 1, 1 << 30, .max] {
      #expect(refusal(try WorkersMemory(tellOffset: offset)) == .wrongDataOffset(Int(offset)))
    }
    // This table would end after the file.
    #expect(refusal(try WorkersMemory(tellSlots: 65_536)) == .wrongDataOffset(Int(pageSize)))

    for size in [PurgeableRegion.maxSize + 1, .max] {
      #expect(refusal(try WorkersMemory(fileSize: size)) == .tooLarge(size))
    }

    let memory = try WorkersMemory()
    let reading = try Descriptor.open("/proc/self/fd/\(memory.descriptor.raw)", O_RDONLY)
    #expect(throws: PurgeableError.self) { try PurgeableRegion(reading) }
    for path in ["/dev/null", "/proc/self/status", "/", "/dev/shm"] {
      let other = try Descriptor.open(path)
      #expect(throws: PurgeableError.self) { try PurgeableRegion(other) }
    }
  }

  @Test func `A purge makes no hole outside the contents, whatever offsets a slot has`() throws {
    let memory = try WorkersMemory(slots: 16, pages: 8)
    let all = UInt64(memory.size)
    let start = UInt64(memory.dataOffset)
    let extents: [(UInt64, UInt64)] = [
      (0, pageSize), (0, all), (start - pageSize, 2 * pageSize), (start, all),
      (all, pageSize), (all - pageSize, 2 * pageSize), (start + 1, pageSize),
      (start, pageSize - 1), (start, 0), (.max - pageSize + 1, pageSize), (.max, .max),
      (start, .max - start), (start, 1 << 63), (1 << 63, 1 << 63), (start, .max),
    ]
    memset(memory.mapping + memory.dataOffset, 0xAB, 8 * Int(pageSize))
    for (slot, extent) in extents.enumerated() {
      memory.set(slot, volatileState, offset: extent.0, length: extent.1)
    }
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.volatileBytes() == 0)
    #expect(region.purge() == 0)
    #expect(memory.holds(0xAB, page: 0, pages: 8))
    #expect(memory.mapping.load(as: UInt64.self) == PurgeableLayout.magic)
    #expect(memory.word(3).state == volatileState)
  }

  @Test
  func `A purge of a file that was sealed against writing later frees nothing and doesn't hang`()
    throws
  {
    let memory = try WorkersMemory()
    memory.fill(0, page: 0, pages: 4, volatileState)
    let region = try PurgeableRegion(memory.descriptor)
    let futureWrites: Int32 = 0x10
    try #require(fcntl(memory.descriptor.raw, 1033 /* F_ADD_SEALS */, futureWrites) == 0)
    #expect(region.purge() == 0)
    #expect(memory.holds(1, page: 0, pages: 4))
    #expect(memory.word(0).state == volatileState)
  }

  @Test func `Contents that overlap are emptied once`() throws {
    let memory = try WorkersMemory(slots: 1000, pages: 4)
    for slot in 0..<1000 { memory.fill(slot, page: 0, pages: 4, volatileState) }
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.volatileBytes() == 4 * page)
    #expect(region.purge() == 4 * page)
    let emptied = (0..<1000).filter { !memory.word($0).state.isUsed }
    #expect(emptied == [0])
  }

  @Test func `Contents that overlap in a huge file count at most what it occupies`() throws {
    let fileSize = PurgeableRegion.maxSize
    let memory = try WorkersMemory(slots: 1000, pages: 4, fileSize: fileSize)
    memory.fill(0, page: 0, pages: 1, volatileState)
    let start = UInt64(memory.dataOffset)
    for slot in 1..<1000 {
      memory.set(slot, volatileState, offset: start, length: UInt64(fileSize) - start)
    }
    let region = try PurgeableRegion(memory.descriptor)
    #expect(region.volatileBytes() == region.allocatedBytes)
    #expect(region.purge() == page)
  }

  @Test func `A worker that overwrites its slots during a purge does no harm`() throws {
    let memory = try WorkersMemory(slots: 512, pages: 64)
    let region = try PurgeableRegion(memory.descriptor)
    let table = UInt(bitPattern: memory.mapping)
    let (size, dataOffset) = (memory.size, memory.dataOffset)
    let file = memory.descriptor
    let goesOn = Mutex(true)
    let scribbler = try TestThread {
      var random = TestRandom()
      let words = size / 8
      while goesOn.withLock({ $0 }) {
        for _ in 0..<1000 {
          guard
            let word = UnsafeMutablePointer<Atomic<UInt64>>(
              bitPattern: table + UInt.random(in: 0..<UInt(words), using: &random) * 8)
          else { return }
          let places = UInt64(dataOffset)..<UInt64(size)
          let values = [
            volatileState.rawValue, UInt64.random(in: .min ... .max, using: &random),
            UInt64.random(in: places, using: &random) & ~(pageSize - 1), pageSize,
          ]
          word.pointee.store(values.randomElement(using: &random) ?? 0, ordering: .relaxed)
        }
        // The worker even removes its own table.
        _ = clinux_punch(file.raw, 0, Int64(size))
      }
    }
    for _ in 0..<2000 {
      #expect(region.volatileBytes() <= region.size)
      #expect(region.purge() <= region.size)
    }
    goesOn.withLock { $0 = false }
    scribbler.join()
  }
}
