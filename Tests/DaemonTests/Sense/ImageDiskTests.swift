import Hibernation
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("Looks at the images") struct ImageDiskTests {
  private let world = SenseWorld()
  private let scratch: Scratch
  private let loop: EventLoop
  private let jobs: LoopJobs

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop(check: nil)
    jobs = try LoopJobs(
      loop, JobPool(name: "test-images", maxOrdinary: 256, endsAfter: .seconds(5)))
  }

  private func probe(
    _ workers: WorkerRegistry, didBegin: @escaping () -> Void = {}
  ) -> CoalescedProbe<ImageDisk> {
    let directory = scratch.path
    return ImageDisk.probe(
      jobs, directory: directory, workers: workers, sharedImages: nil,
      image: { "\(directory)/\($0).image" }, didBegin: didBegin)
  }

  private func writeBase(of name: String, _ length: Int) throws {
    let base = Hibernator.basePath(of: "\(scratch.path)/\(name).image")
    try scratch.write(
      String(base.dropFirst(scratch.path.count + 1)), String(repeating: "x", count: length))
  }

  @Test("A reader finds the file system's free space and the bases of running workers")
  func readings() throws {
    try world.add("web")
    try world.add("none")
    try writeBase(of: "web", 1234)
    var begun = 0
    let probe = probe(world.workers) { begun += 1 }
    var readings: [ImageDisk?] = []
    for _ in 0..<3 { probe.ask { readings.append($0) } }
    try loop.turn { readings.count == 3 }
    let disk = try #require(readings.first ?? nil)
    #expect(disk.total > .zero && disk.bases == ["web": 1234] && disk.images.isEmpty)
    // The two callers that came while the first reading was under way share the second.
    #expect(begun == 2)
  }

  @Test func `The image of a trim counts while some of the worker's memory is only there`() throws {
    let world = try SleepWorld(.background)
    world.workers[world.id] = world.worker
    let (sleep, probe) = (try world.makeSleep(), probe(world.workers))
    try scratch.write("web.image", String(repeating: "x", count: 77))
    for (missing, images) in [(UInt64(4096), ["web": Int64(77)]), (0, [:])] {
      sleep.missing = MissingBytes(missing, isTrimmed: true)
      var disk: ImageDisk?
      probe.ask { disk = $0 }
      try loop.turn { disk != nil }
      #expect(disk?.images == images)
    }
  }
}
