import CLinux
import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Programs of each kind that can't be hibernated (Tests/Fixtures/ineligible.c). They are refused
/// before anything is changed, and run afterwards as before.
@Suite(.serialized)
struct EligibilityTests {
  let service = HibernationService()

  struct Kind: CustomTestStringConvertible, Sendable {
    let name: String
    /// The part of the message that names the cause.
    let cause: String
    let aftermath: HibernationError.Aftermath
    var testDescription: String { name }

    init(_ name: String, _ cause: String, _ aftermath: HibernationError.Aftermath = .intact) {
      (self.name, self.cause, self.aftermath) = (name, cause, aftermath)
    }
  }

  static let refused = [
    Kind("uring-buffers", "has 1 io_uring buffers registered with the kernel"),
    Kind("uring-buffers-later", "has 1 io_uring buffers registered with the kernel"),
    Kind("uring-buffers-hidden", "has 64 KB pinned by the kernel or a device (io_uring buffers"),
    Kind("uring-hidden", "uses io_uring through a registered ring"),
    Kind("uring-unmapped", "has an io_uring that it doesn't map"),
    Kind("uring-poll", "has io_uring requests in flight"),
    Kind("uring-worker", "has io_uring requests in flight"),
    Kind("mlockall", "of locked memory (mlock)", .ineligible),
    Kind("hugetlb", "uses huge pages (hugetlbfs)", .ineligible),
    Kind("aio", "uses asynchronous I/O (io_submit)", .ineligible),
    Kind("userfaultfd", "handles its own page faults (userfaultfd)", .ineligible),
    Kind("secret", "has secret memory (memfd_secret)", .ineligible),
    Kind("vfork", "shares its memory with process"),
    Kind("clone-vm", "shares its memory with process"),
    Kind("device", "maps a device (/", .ineligible),
  ]

  @Test(
    "A process that can't be hibernated is refused with its cause, and isn't changed",
    arguments: refused, Nightly.one(of: Victim.Parking.available))
  func refusal(kind: Kind, parking: Victim.Parking) throws {
    guard let victim = try Self.start(kind.name, parking) else { return }
    // A parent that waits in vfork(2) can be frozen, but not stopped.
    let isSuspended = parking == .frozen || kind.name != "vfork"
    if isSuspended { try victim.suspend() }
    let before = try victim.anonymousMemory()
    let path = Fixture.imagePath()
    let error = try #require(
      #expect(throws: HibernationError.self) {
        try service.hibernate(HibernationRequest(victim.target, to: path))
      })
    #expect(error.description.contains(kind.cause), "\(error)")
    #expect(error.aftermath == kind.aftermath)
    #expect(try listDirectory(Fixture.scratch).allSatisfy { !path.hasSuffix($0) })
    if isSuspended {
      // SIGSTOP takes effect in each thread separately.
      #expect(try eventually { try victim.isSuspended })
      #expect(try victim.anonymousMemory() == before)
      try victim.carryOn()
    }
    #expect(try victim.ask("check") == "fine")
  }

  @Test(
    "A process without an obstacle is hibernated", arguments: ["plain", "uring-idle"],
    Nightly.one(of: Victim.Parking.available))
  func control(kind: String, parking: Victim.Parking) throws {
    guard let victim = try Self.start(kind, parking) else { return }
    for _ in 0..<3 {
      try victim.cycle(service)
      #expect(try victim.ask("check") == "fine")
    }
  }

  @Test(
    "A process can be hibernated when its requests in flight have ended", arguments: ["uring-poll"])
  func laterOn(kind: String) throws {
    guard let victim = try Self.start(kind, .traced) else { return }
    #expect(try victim.refusal(service).description.contains("in flight"))
    try victim.carryOn()
    #expect(try victim.ask("check") == "fine")
    try victim.cycle(service)
  }

  /// The kernel keeps the thread for the next request.
  @Test("A thread that the kernel has made for io_uring doesn't work, and keeps its registers")
  func kernelThread() throws {
    guard let victim = try Self.start("uring-worker", .traced) else { return }
    #expect(try victim.ask("check") == "fine")
    let pid = victim.process.pid
    let names = try threads(of: pid).map { try ProcessStat.read(thread: $0, of: pid).name }
    guard names.contains(where: { $0.hasPrefix("iou-wrk") }) else {
      return notTestedHere("this kernel keeps no threads for io_uring")
    }
    try victim.waitUntilBlocked()
    try victim.suspend()
    let tree = try victim.target.discover()
    #expect(tree.threadAtWork == nil)
    #expect(tree.threadWithResult(until: Deadline(in: .seconds(60))) == nil)
    let session = try TraceSession.seize(victim.process.identity)
    defer { session.detach() }
    #expect(session.threads.count > 1)
    #expect(session.threads.filter(\.isWaiting).map(\.tid) == [pid])
    let vdso = try MemoryMapping.headers(of: pid).first { $0.name == "[vdso]" }
    var injector = try Injector(
      session: session, memory: try ProcessMemory(pid: pid), vdso: try #require(vdso))
    try injector.mapScratch(at: 0x10_0000_0000)
    try injector.parkOthers(spins: true)
    // arm64 refuses to write them.
    for thread in session.threads where thread.tid != pid {
      #expect(try session.readRegisters(thread.tid).isLike(thread.registers))
    }
    try injector.finish()
    for thread in session.threads { try session.restore(thread) }
  }

  @Test("Strict seccomp mode is suspended during a hibernation, or the process is refused")
  func strictSeccomp() throws {
    guard let victim = try Self.start("strict", .traced) else { return }
    try victim.waitUntilBlocked()
    do {
      for _ in 0..<3 {
        try victim.cycle(service)
        #expect(try victim.ask("check") == "fine")
      }
    } catch let error as HibernationError {
      #expect(error.description.contains("seccomp filter"))
      #expect(error.aftermath == .ineligible)
      try victim.carryOn()
      #expect(try victim.ask("check") == "fine")
    }
  }

  @Test func `Memory with tags is refused, because the tags would be lost with its pages`() throws {
    let process = try ProcessStat.read(getpid())
    var mapping = MemoryMapping(start: 16 * pageSize, end: 32 * pageSize)
    try Eligibility.check(mappings: [mapping], of: process)
    mapping.flags.insert(.tagged)
    let error = #expect(throws: HibernationError.self) {
      try Eligibility.check(mappings: [mapping], of: process)
    }
    #expect(error?.description.contains("has memory with tags (MTE)") == true)
    #expect(error?.aftermath == .ineligible)
  }

  @Test func `A child that has ended since it was found is no obstacle`() throws {
    let program = "import time; print('ready', flush=True); time.sleep(3600)"
    let command = ["/usr/bin/python3", "-c", program]
    let (living, ended) = (try Victim(ready: command), try Victim(ready: command))
    let processes = try [ended, living].map { try ProcessStat.read($0.process.pid) }
    kill(ended.process.pid, SIGKILL)
    reap(ended.process.pid)
    try Eligibility.check(processes: processes)
  }

  @Test("A child that a trimmed worker has just forked is refused only now")
  func registeredChild() throws {
    let process = try ProcessStat.read(getpid())
    var mapping = MemoryMapping(start: 16 * pageSize, end: 32 * pageSize)
    mapping.flags.insert(.userfault)
    for (isOfTrimmed, aftermath) in [
      (false, HibernationError.Aftermath.ineligible), (true, .intact),
    ] {
      let error = #expect(throws: HibernationError.self) {
        try Eligibility.check(mappings: [mapping], of: process, isOfTrimmed: isOfTrimmed)
      }
      #expect(error?.aftermath == aftermath)
    }
  }

  @Test func `The auxiliary vector shows whether a program is a 64-bit one`() throws {
    func vector<Value: FixedWidthInteger>(_ values: [Value]) -> [UInt8] {
      values.withUnsafeBytes { Array($0) }
    }
    let program: [UInt64] = [33, 4096, 3, 64, 4, 56, 5, 13, 0, 0]
    #expect(Eligibility.is64Bit(auxv: vector(program)) == true)
    let narrow = program.map { UInt32($0) } + [0, 0]
    #expect(Eligibility.is64Bit(auxv: vector(narrow)) == false)
    let program32: [UInt32] = [32, 4096, 33, 4096, 3, 52, 4, 32, 5, 9, 0, 0, 0, 0, 0, 0]
    #expect(Eligibility.is64Bit(auxv: vector(program32)) == false)
    // The process executes a program just now, has ended, or the vector was cut off.
    #expect(Eligibility.is64Bit(auxv: vector([UInt64(0), 0])) == nil)
    #expect(Eligibility.is64Bit(auxv: []) == nil)
    for count in [8, 32, 40] {
      #expect(Eligibility.is64Bit(auxv: Array(vector(program).prefix(count))) == nil)
    }
    #expect(Eligibility.is64Bit(auxv: try readFile("/proc/self/auxv")) == true)
  }

  @Test func `Registers of a 32-bit program are refused`() {
    var registers = clinux_registers()
    registers.length = 68
    #expect(clinux_registers_complete(0, &registers) == -EIO)
  }

  @Test("A 32-bit program is refused", .enabled(if: Program.find("ld") != nil, "there is no ld"))
  func program32() throws {
    let program = "\(Fixture.scratch)/program32"
    let object = "\(program).o"
    try #require(
      try Fixture.run(["as", "--32", "-o", object, Fixture.path("program32.s")]) == 0)
    try #require(try Fixture.run(["ld", "-m", "elf_i386", "-o", program, object]) == 0)
    guard let victim = try? Victim([program]), (try? victim.line()) == "ready" else {
      return notTestedHere("this kernel runs no 32-bit programs")
    }
    let error = try victim.refusal(service)
    #expect(error.description.contains("is a 32-bit program"))
    #expect(error.aftermath == .ineligible)
    #expect(try victim.isSuspended)
    try victim.carryOn()
    #expect(try victim.ask("check") == "fine")
  }

  @Test(
    "Without kcmp, processes with separate memory are accepted, and others are refused"
  )
  func withoutKcmp() throws {
    let tree = try Victim(ready: "forktree", "4", "3", "9")
    try tree.suspend()
    let processes = try tree.target.discover().processes
    #expect(processes.count == 4)
    try SharedMemoryMaps.check(processes) { _, _ in -EPERM }

    guard let sharer = try Self.start("clone-vm", .traced) else { return }
    try sharer.suspend()
    let pair = try sharer.target.discover().processes
    #expect(pair.count == 2)
    let error = #expect(throws: HibernationError.self) {
      try SharedMemoryMaps.check(pair) { _, _ in -EPERM }
    }
    #expect(
      error?.description.contains("kcmp failed (Operation not permitted)") == true)
    #expect(error?.aftermath == .intact)
  }

  /// Starts a program of a kind. It is `nil` if this machine doesn't permit that kind.
  private static func start(_ kind: String, _ parking: Victim.Parking) throws -> Victim? {
    let pages = kind == "hugetlb" ? HugePages() : nil
    defer { pages?.release() }
    let victim = try Victim([try Fixture.compile("ineligible"), kind], parking: parking)
    let line = try victim.line()
    if line == "ready" {
      let pid = victim.process.pid
      // It computes by then, and isn't in the call any more that has said so.
      if kind.hasSuffix("-later") {
        try #require(try eventually { try ProcessStat.read(pid).cpuTicks > 2 })
      }
      return victim
    }
    notTestedHere("\(kind): \(line)")
    return nil
  }
}

/// Adds a huge page to the kernel's pool, if that is permitted. Pages in use stay when it is
/// removed again.
private struct HugePages {
  private static let path = "/proc/sys/vm/nr_hugepages"
  private let before = (try? readText(path))?.prefix { $0 != "\n" }

  init() {
    if let before, let count = Int(before) { try? writeControl(Self.path, "\(count + 1)") }
  }

  func release() {
    if let before { try? writeControl(Self.path, String(before)) }
  }
}
