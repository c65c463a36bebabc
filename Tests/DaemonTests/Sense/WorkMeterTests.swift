import Testing

@testable import Daemon

@Suite("Whether a wrapped program is at work") struct WorkMeterTests {
  @Test func `Output since the last sample counts as work, and so does a running thread`() {
    var meter = WorkMeter()
    #expect(meter.compare([7], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7], hasWritten: true) { _ in false } == .output)
    #expect(meter.compare([7], hasWritten: false) { $0 == 7 } == .processor)
    #expect(meter.compare([7], hasWritten: false) { _ in false } == nil)
  }

  @Test(
    "A start or end of a process between two samples counts as work; the first sample finds none")
  func members() {
    var meter = WorkMeter()
    #expect(meter.compare([7, 8], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7, 8, 9], hasWritten: false) { _ in false } == .processes)
    #expect(meter.compare([7, 8, 9], hasWritten: false) { _ in false } == nil)
    #expect(meter.compare([7, 9], hasWritten: false) { _ in false } == .processes)
    // The number of processes is the same, but they are others.
    #expect(meter.compare([7, 10], hasWritten: false) { _ in false } == .processes)
  }
}
