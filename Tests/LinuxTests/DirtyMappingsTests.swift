import Testing

@testable import Linux

@Suite("Dirty memory by mapping") struct DirtyMappingsTests {
  private static func mapping(
    _ range: String, _ name: String, dirty: Int, swapped: Int = 0
  ) -> String {
    """
    \(range) rw-p 00000000 00:00 \(name.hasPrefix("/") ? 7 : 0)    \(name)
    Size:  9999 kB
    Private_Dirty:  \(dirty) kB
    Swap:  \(swapped) kB
    VmFlags: rd wr mr

    """
  }

  private static let smaps =
    mapping("1000-2000", "[heap]", dirty: 100) + mapping("3000-4000", "", dirty: 20, swapped: 8)
    + mapping("5000-6000", "", dirty: 4) + mapping("7000-8000", "", dirty: 2)
    + mapping("9000-a000", "/usr/lib/lib a.so", dirty: 8)
    + mapping("b000-c000", "[anon:arena]", dirty: 6) + mapping("c000-d000", "[stack]", dirty: 1)
    + mapping("e000-f000", "/memfd:x (deleted)", dirty: 5)
    + mapping("f000-ff00", "[vdso]", dirty: 0)

  @Test func `Mappings of all processes are grouped by their purpose, the largest group first`() {
    var mappings = DirtyMappings()
    // The last thread's stack isn't known.
    mappings.add(smaps: Array(Self.smaps.utf8), stackPointers: [0x7800])
    mappings.add(
      smaps: Array(Self.mapping("1000-2000", "[heap]", dirty: 1).utf8), stackPointers: [])
    #expect(mappings.processes == 2)
    let shown = mappings.largestFirst.map {
      "\($0.kind) \($0.name) \($0.dirty >> 10)+\($0.swapped >> 10) in \($0.mappings)"
    }
    #expect(
      shown == [
        "heap  101+0 in 2", "anonymous  24+8 in 2", "file /usr/lib/lib a.so 8+0 in 1",
        "anonymous arena 6+0 in 1", "sharedMemory /memfd:x (deleted) 5+0 in 1", "stack  3+0 in 2",
      ])
  }

  @Test func `A real process's memory is found, and a process that has ended has none`() throws {
    let child = try TestChild(
      "python3", "-c",
      "x = b'x' * (64 << 20); print('ready', flush=True); import time; time.sleep(60)")
    #expect(try child.line() == "ready")
    var mappings = DirtyMappings()
    #expect(try mappings.add(child.pid))
    #expect((mappings.largestFirst.first?.bytes ?? 0) >= 64 << 20)
    #expect(
      mappings.largestFirst.contains { $0.kind == .stack }
        && mappings.largestFirst.contains { $0.kind == .heap })
    #expect(try !mappings.add(Int32.max) && mappings.processes == 1)
  }
}
