import Glibc
import Testing

@testable import Bench
@testable import Doctor
@testable import Linux

@Suite struct BenchSwapTests {
  @Test func `A child's memory is intact after it was offered to swap and read again`() throws {
    let child = try ProbeChild(
      "x=dormouse; while [ ${#x} -lt 1000000 ]; do x=$x$x; done; echo ready; "
        + "read word; echo ${#x}")
    defer { child.end() }
    #expect(try child.line() == "ready")
    // Without swap the kernel keeps the pages. The test checks that the kernel accepts the call.
    #expect(try SwappablePages.resident(of: child.pid).bytes > 1_000_000)
    do {
      try KernelSwap.pageOut(child.pid)
    } catch let refusal as MechanismRefusal {
      #expect(getuid() != 0 && refusal.reason.contains("CAP_SYS_NICE"), "\(refusal)")
    }
    try SwappablePages.readBack(
      ProcessMemory(pid: child.pid), until: Deadline(in: .seconds(60)))
    #expect(try Footprint.measure(child.pid)?.swapped == 0)
    try child.send("go")
    #expect(try child.line() == "1048576")
  }
}
