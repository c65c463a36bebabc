import Checksum
import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct WorkerRecordTests {
  private let hostile = WorkerRecord(
    name: "a/b\nname=other", process: ProcessIdentity(pid: 42, startTime: .max), session: 42,
    bootID: "boot", cgroupPath: "/sys/fs/cgroup/ü",
    command: ["sh", "", "-c", "echo \\n\n\r=\u{0}"],
    directory: "/a=b", logPath: "/log\\", notifySocket: "@dormouse", imagePath: "/image",
    state: "hibernated")

  @Test func `A worker record is equal after saving and loading`() throws {
    let scratch = try Scratch()
    let store = try WorkerRecordStore(directory: "\(scratch.path)/workers")
    try store.save(hostile)
    var plain = hostile
    plain.name = "plain"
    plain.cgroupPath = nil
    plain.cgroupInode = UInt64.max
    plain.imagePath = nil
    plain.command = []
    plain.importance = 50
    plain.waits = TimedWaits.Kept(restsSince: 12_345_678_901, began: [42: 12_000_000_000, 43: -7])
    plain.wasInFront = true
    plain.external = .mayNot
    plain.policy = "server"
    plain.settings = ["hibernate.after=5m", "background.suspend_after=2s"]
    plain.isShadow = true
    plain.wakeWith = ["shop.db"]
    plain.healthChecks = ["8081/healthz", "8080"]
    try store.save(plain)
    #expect(try store.load(hostile.name) == hostile)
    #expect(try store.load("plain") == plain)
    let (records, failures) = try store.loadAll()
    #expect(Set(records) == [hostile, plain])
    #expect(failures.isEmpty)

    plain.state = "background"
    try store.save(plain)
    #expect(try store.load("plain").state == "background")
    store.remove("plain")
    #expect(throws: WorkerRecordError.self) { try store.load("plain") }
    var status = stat()
    #expect(stat(store.directory, &status) == 0 && status.st_mode & 0o777 == 0o700)
    #expect(stat(store.path(of: hostile.name), &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test func `A value that begins with a combining scalar is equal after saving and loading`()
    throws
  {
    var record = hostile
    // U+0301 is an accent, U+200D a joiner, U+FE0F a variation selector.
    record.command = ["x", "\u{301}a", "\u{200D}", "\u{FE0F}="]
    record.directory = "/a\u{301}"
    let decoded = try WorkerRecord.decode(Array(record.encoded.utf8))
    // Strings are equal if only their scalars' composition differs, so the bytes are compared.
    #expect(decoded.command.map { Array($0.utf8) } == record.command.map { Array($0.utf8) })
    #expect(decoded == record)
  }

  @Test func `A worker record that is cut off at any byte is reported as damaged`() {
    let bytes = Array(hostile.encoded.utf8)
    for length in 0..<bytes.count {
      #expect(throws: WorkerRecordError.Damage.torn) {
        try WorkerRecord.decode(Array(bytes.prefix(length)))
      }
    }
  }

  @Test func `Any flipped bit in a worker record is detected`() {
    let bytes = Array(hostile.encoded.utf8)
    for index in bytes.indices {
      for bit in 0..<8 {
        var flipped = bytes
        flipped[index] ^= 1 << UInt8(bit)
        #expect(throws: WorkerRecordError.Damage.self) { try WorkerRecord.decode(flipped) }
      }
    }
  }

  private func sealed(_ body: String) -> [UInt8] {
    Array((body + "crc32=\(CRC32.ieee.text(of: body.utf8))\n").utf8)
  }

  @Test func `Newer versions, missing keys and malformed lines of a record have different errors`()
  {
    #expect(throws: WorkerRecordError.Damage.version("2")) {
      try WorkerRecord.decode(sealed("dormouse-worker=2\n"))
    }
    #expect(throws: WorkerRecordError.Damage.missing("name")) {
      try WorkerRecord.decode(sealed("dormouse-worker=1\n"))
    }
    #expect(throws: WorkerRecordError.Damage.malformed(line: "x")) {
      try WorkerRecord.decode(sealed("dormouse-worker=1\nx\n"))
    }
  }

  @Test func `Unknown keys of a worker record are skipped`() throws {
    var body = hostile.encoded
    body = String(body[..<(body.range(ofLast: "crc32=") ?? body.endIndex)])
    #expect(try WorkerRecord.decode(sealed(body + "colour=red\n")) == hostile)
  }

  @Test func `Damage in one record doesn't hide the others`() throws {
    let scratch = try Scratch()
    let store = try WorkerRecordStore(directory: scratch.path)
    try store.save(hostile)
    try Descriptor.open("\(scratch.path)/bad.worker", O_WRONLY | O_CREAT, mode: 0o600)
      .writeAll("dormouse-worker=1\n")
    try Descriptor.open("\(scratch.path)/cut.worker.partial", O_WRONLY | O_CREAT, mode: 0o600)
      .writeAll("dorm")
    let (records, failures) = try store.loadAll()
    #expect(records == [hostile])
    #expect(failures == [.damaged(path: "\(scratch.path)/bad.worker", .torn)])
  }

  @Test
  func `A damaged record that an earlier boot of the machine has left is removed silently`()
    throws
  {
    let scratch = try Scratch()
    let store = try WorkerRecordStore(directory: scratch.path)
    try store.save(hostile)
    try scratch.write("empty.worker", "")
    try scratch.write("zeros.worker", String(repeating: "\0", count: 300))
    try scratch.write("newer.worker", "dormouse-worker=2\n")
    for name in ["empty", "zeros", "newer"] {
      var times = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
      #expect(utimes("\(scratch.path)/\(name).worker", &times) == 0)
    }
    // This record was emptied since the machine's start: its worker may live.
    try scratch.write("emptied.worker", "")
    // The first record was emptied while the clock was wrong. The second is of an earlier boot,
    // whose clock was ahead.
    for (name, boot) in [("marked", String?.none), ("earlier", "another")] {
      let path = try scratch.write("\(name).worker", "")
      let file = try Descriptor.open(path, O_WRONLY)
      BootMark.set(on: file, boot: boot)
      let time = time_t(boot == nil ? 1_000_000 : 10_000_000_000)
      var times = [timeval(tv_sec: time, tv_usec: 0), timeval(tv_sec: time, tv_usec: 0)]
      #expect(utimes(path, &times) == 0)
    }
    #expect(mkfifo("\(scratch.path)/fifo.worker", 0o600) == 0)
    let (records, failures) = try store.loadAll()
    #expect(records == [hostile] && failures.count == 3)
    #expect(store.contains("marked") && !store.contains("earlier"))
    #expect(
      store.contains("emptied") && !store.contains("empty") && !store.contains("zeros")
        && !store.contains("newer") && store.contains("fifo"))
  }

  @Test func `A record that can't be saved leaves the old record`() throws {
    let scratch = try Scratch()
    let store = try WorkerRecordStore(directory: scratch.path)
    try store.save(hostile)
    // This directory has the path of the temporary file.
    let blocked = store.path(of: hostile.name) + ".partial"
    #expect(mkdir(blocked, 0o700) == 0)
    var changed = hostile
    changed.state = "terminated"
    #expect(throws: WorkerRecordError.self) { try store.save(changed) }
    #expect(try store.load(hostile.name) == hostile)
    #expect(throws: WorkerRecordError.self) {
      try WorkerRecordStore(directory: "/nowhere/at/all")
    }
  }

  @Test func `A record finds its worker only while it lives, and only in the same boot`() throws {
    let worker = try TestWorker("sleep", "60")
    let boot = try BootMark.current()
    let record = WorkerRecord(worker.process, bootID: boot, state: "background")
    #expect(record.life(bootID: boot) == .lives)
    #expect(record.life(bootID: "another") == .hasEnded)
    try worker.process.killAll()
    _ = try worker.waitForExit()
    #expect(record.life(bootID: boot) == .hasEnded)
  }
}

extension String {
  fileprivate func range(ofLast text: String) -> String.Index? {
    indices.last { self[$0...].hasPrefix(text) }
  }
}
