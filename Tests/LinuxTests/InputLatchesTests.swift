import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Latches of input") struct InputLatchesTests {
  @Test func `Input at a latch that can't be armed again is reported once`() throws {
    let latches = try InputLatches(capacity: 1)
    let (reader, writer) = try Descriptor.pipe()
    let latch = latches.add()
    try latches.arm(latch, at: reader)
    latches.collect()
    #expect(latch.isArmed && !latch.hasFired)
    try writer.writeAll("x")
    latches.collect()
    #expect(!latch.isArmed && latch.hasFired)
    // The kernel polls no descriptor with O_PATH.
    let refused = try Descriptor.open("/", Int32(CLINUX_O_PATH))
    #expect(throws: SystemCallError.self) { try latches.arm(latch, at: refused) }
    latches.collect()
    #expect(!latch.isArmed && !latch.hasFired)
    try latches.arm(latch, at: reader)
    latches.collect()
    #expect(latch.hasFired, "the input is still unread")
    latches.remove(latch)
  }
}
