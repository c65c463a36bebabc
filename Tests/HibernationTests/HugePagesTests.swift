import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The memory that khugepaged adds to a worker while it is hibernated.
@Suite(.serialized)
struct HugePagesTests {
  let service = HibernationService()

  @Test(
    "Pages that a hibernated worker keeps count as unused: no huge page is made around them",
    arguments: Nightly.one(of: Victim.Parking.available))
  func unused(parking: Victim.Parking) throws {
    let victim = try Victim([try Fixture.compile("sequences"), "6"], parking: parking)
    guard try victim.line() != "none", KernelTrial.asTracer.showsRseq == 1 else {
      return notTestedHere("no thread has an area for restartable sequences that stays in RAM")
    }
    for _ in 0..<3 {
      let path = try victim.sleep(service)
      let kept = try Self.areas(of: victim.process.pid).filter { $0.isUnnamed }
      #expect(kept.reduce(0) { $0 + $1.anonymous } >= 7 * pageSize)
      #expect(kept.allSatisfy { $0.used == 0 })
      try victim.wake(service, from: path)
      #expect(try victim.ask("check") == "wrong 0")
    }
  }

  @Test(
    "Holes that khugepaged fills with zeros during the capture are free in the sleeping worker",
    arguments: Nightly.one(of: Victim.Parking.available))
  func holes(parking: Victim.Parking) throws {
    let victim = try Victim(ready: "thp", "8", parking: parking)
    #expect(try victim.ask("holes") == "holes")
    let sum = try victim.ask("sum")
    // Reading has filled them with pages of zeros.
    #expect(try victim.ask("holes") == "holes")
    let path = Fixture.imagePath()
    let target = victim.target
    try victim.suspend()
    let grown = try service.wait { (hibernator) throws(HibernationError) -> UInt64? in
      var operation = Operation(
        HibernationRequest(target, to: path), restore: RestorePlan(.eager), overlays: false,
        seal: nil, hibernator: hibernator)
      try operation.stopAndSeize(nil)
      try operation.capture()
      // There may be no free huge page, and older kernels don't have the call.
      let command = ["python3", Fixture.path("collapse.py"), "\(target.root.pid)"]
      let isCollapsed = (try? Fixture.run(command)) == 0
      let grown = isCollapsed ? Self.wantingHugePages(target.root.pid) : nil
      try operation.evict()
      _ = try operation.rest()
      return grown
    }
    if let grown {
      #expect(grown == 8 << 20)
      #expect(Self.wantingHugePages(target.root.pid) == 0)
    } else {
      notTestedHere("the kernel makes no huge pages on request")
    }
    try victim.wake(service, from: path)
    #expect(try victim.ask("sum") == sum)
  }

  @Test(
    "A page that stays shares no huge page with memory that was freed",
    arguments: Nightly.one(of: Victim.Parking.available))
  func alone(parking: Victim.Parking) throws {
    let victim = try Victim([try Fixture.compile("sequences"), "4", "huge"], parking: parking)
    guard try victim.line() != "none", KernelTrial.asTracer.showsRseq == 1 else {
      return notTestedHere("no thread has an area for restartable sequences that stays in RAM")
    }
    let addresses = try victim.ask("areas").split(separator: " ").dropFirst().map {
      try #require(UInt64($0.split(separator: ":")[1], radix: 16))
    }
    guard let before = Self.inHugePages(addresses, of: victim.process.pid), before > 0 else {
      return notTestedHere("no huge page is free, or /proc/kpageflags isn't readable")
    }
    let path = try victim.sleep(service)
    #expect(Self.inHugePages(addresses, of: victim.process.pid) == 0)
    try victim.wake(service, from: path)
    #expect(try victim.ask("check") == "wrong 0")
  }

  /// Returns the number of these addresses that are in huge pages.
  private static func inHugePages(_ addresses: [UInt64], of pid: Int32) -> Int? {
    func entry(_ number: UInt64, of path: String) -> UInt64? {
      var entry: UInt64 = 0
      guard let file = try? Descriptor.open(path, O_RDONLY),
        pread(file.raw, &entry, 8, off_t(number * 8)) == 8
      else { return nil }
      return entry
    }
    var count = 0
    for address in addresses {
      guard let page = entry(address / pageSize, of: "/proc/\(pid)/pagemap"), page >> 63 == 1,
        case let frame = page & (1 << 55 - 1), frame != 0,
        let flags = entry(frame, of: "/proc/kpageflags")
      else { return nil }
      // The bit is KPF_THP.
      if flags & 1 << 22 != 0 { count += 1 }
    }
    return count
  }

  private struct Area {
    /// True if the area has no file, and isn't the stack, whose page with the arguments stays.
    var isUnnamed: Bool
    var wantsHugePages = false
    /// The anonymous memory, in bytes.
    var anonymous: UInt64 = 0
    /// The memory that the kernel has marked as used, in bytes.
    var used: UInt64 = 0
  }

  private static func areas(of pid: Int32) throws -> [Area] {
    var areas: [Area] = []
    for line in try readText("/proc/\(pid)/smaps").split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard let first = fields.first, fields.count > 1 else { continue }
      if !first.hasSuffix(":") { areas.append(Area(isUnnamed: fields.count == 5)) }
      guard let last = areas.indices.last else { continue }
      switch first {
      case "Anonymous:": areas[last].anonymous = (UInt64(fields[1]) ?? 0) * 1024
      case "Referenced:": areas[last].used = (UInt64(fields[1]) ?? 0) * 1024
      case "VmFlags:": areas[last].wantsHugePages = fields.contains("hg")
      default: break
      }
    }
    return areas
  }

  /// Returns the anonymous memory in areas for which the program wants huge pages, in bytes.
  private static func wantingHugePages(_ pid: Int32) -> UInt64? {
    (try? areas(of: pid))?.filter { $0.wantsHugePages }.reduce(0) { $0 + $1.anonymous }
  }
}
