import Glibc
import Testing

@testable import Linux

@Suite struct MemoryTests {
  @Test func `The machine's memory is read from meminfo`() throws {
    let info = try MemoryInfo.read()
    #expect(info.total > 0)
    #expect(info.available > 0 && info.available <= info.total)
    #expect(try MemoryInfo.read(withPerCPULists: true).available > 0)
    #expect(MemoryInfo(parsing: Array("MemTotal: 5 kB\n".utf8)) == nil)
  }

  @Test func `The free lists of each CPU are added up`() {
    let text = """
      Node 0, zone   Normal
        pages free     5
        pagesets
          cpu: 0
                    count:    93
                    high:     372
          cpu: 1
                    count: 7
      """
    #expect(MemoryInfo.perCPUPages(parsing: Array(text.utf8)) == 100)
  }

  @Test func `A process's private dirty memory is its footprint`() throws {
    let child = try TestChild(
      "python3", "-c",
      """
      import signal, time
      signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
      print('small', flush=True)
      signal.sigwait([signal.SIGUSR1])
      block = bytearray(b'x') * (20 << 20)
      print('big', flush=True)
      time.sleep(60)
      """)
    #expect(try child.line() == "small")
    let before = try #require(try Footprint.measure(child.pid))
    kill(child.pid, SIGUSR1)
    #expect(try child.line() == "big")
    let after = try #require(try Footprint.measure(child.pid))
    let grown = after.footprint - before.footprint
    #expect(grown >= 20 << 20 && grown < 24 << 20)
    #expect(after.anonymous >= 20 << 20)
    #expect(after.resident >= after.proportional)
    #expect(after.reclaimable > 0)

    var sum = before
    sum += after
    #expect(sum.footprint == before.footprint + after.footprint)
    kill(child.pid, SIGKILL)
    try child.waitForExit()
    #expect(try Footprint.measure([child.pid]).footprint == 0)
  }

  @Test func `The sums of smaps equal smaps_rollup`() throws {
    let long = Footprint(parsing: try readFile("/proc/self/smaps"))
    #expect(long.footprint > 0)
    #expect(long.resident >= long.footprint - long.swapped)
  }

  @Test func `Memory that the processes of a tree share since a fork counts once`() throws {
    func rollup(dirty: Int, anonymous: Int, proportional: Int, lazyFree: Int = 0) -> Footprint {
      Footprint(
        parsing: Array(
          """
          Rss: 90000 kB
          Pss_Anon: \(proportional) kB
          Pss_Shmem: 0 kB
          Private_Dirty: \(dirty) kB
          Anonymous: \(anonymous) kB
          LazyFree: \(lazyFree) kB
          Swap: 0 kB
          SwapPss: 0 kB
          """.utf8))
    }
    // The parent has 2 MB of its own, and three children have 1 MB each. They share 40 MB.
    var sum = rollup(dirty: 2048, anonymous: 43_008, proportional: 12_288)
    for _ in 0..<3 { sum += rollup(dirty: 1024, anonymous: 41_984, proportional: 11_264) }
    #expect(sum.sharedByFork == 40 << 20 && sum.footprint == 45 << 20)
    // Memory of one process alone doesn't count twice, and memory that it has freed doesn't count.
    let single = rollup(dirty: 4096, anonymous: 6144, proportional: 6144, lazyFree: 2048)
    #expect(single.sharedByFork == 0 && single.footprint == 4 << 20)
  }

  @Test func `Memory in swap that processes share counts once`() {
    // Four processes share 40 MB since a fork. Each also maps shared memory: 10 MB are in swap.
    let one = Footprint(parsing: Array("Swap: 51200 kB\nSwapPss: 10240 kB\n".utf8))
    var sum = one
    for _ in 0..<3 { sum += one }
    #expect(sum.swapped == 40 << 20 && sum.footprint == 40 << 20)
  }

  @Test func `A tree that has forked after it filled its memory shows that memory once`() throws {
    let child = try TestChild(
      "python3", "-c",
      """
      import os, sys, time
      heap = bytearray(b"x") * (32 << 20)
      for _ in range(3):
          if os.fork() == 0: time.sleep(1000)
      print("ready", flush=True)
      os.wait()
      """)
    #expect(try child.line() == "ready")
    let pids = try child.tree().pids
    let sum = try Footprint.measure(pids)
    #expect(pids.count == 4)
    #expect(sum.footprint >= 32 << 20 && sum.footprint < 64 << 20, "\(sum)")
    #expect(sum.sharedByFork >= 30 << 20)
  }

  @Test func `A process that doesn't exist has no footprint`() throws {
    #expect(try Footprint.measure(Int32.max) == nil)
  }

  @Test func `A footprint error explains the missing permission`() {
    let error = FootprintError(
      pid: 5, cause: SystemCallError("open", on: "/proc/5/smaps_rollup", code: EACCES))
    #expect(error.description.contains("CAP_SYS_PTRACE"))
  }
}

@Suite struct PressureStallTests {
  @Test func `Averages and totals of pressure stall information are read`() throws {
    let text = """
      some avg10=1.25 avg60=0.00 avg300=0.00 total=1234
      full avg10=0.50 avg60=0.00 avg300=0.00 total=56
      """
    let stall = try #require(PressureStall(parsing: Array(text.utf8)))
    #expect(stall.some == PressureStall.Line(average10: 1.25, totalMicroseconds: 1234))
    #expect(stall.full == PressureStall.Line(average10: 0.5, totalMicroseconds: 56))
    for (text, value) in [
      ("0.00", 0.0), ("12.34", 12.34), ("100", 100), ("7.5", 7.5), ("0.07", 0.07),
    ] {
      #expect(Array(text.utf8).decimal().map { abs($0 - value) < 1e-12 } == true, "\(text)")
    }
    for text in ["", ".", "1.", ".5", "-1", "1.2.3", "nan"] {
      #expect(Array(text.utf8).decimal() == nil, "\(text)")
    }
    #expect(PressureStall(parsing: Array("some nonsense\n".utf8)) == nil)
    #expect(PressureStall(parsing: []) == nil)
  }

  @Test(
    "The kernel's counters of this process are read, and those of an ended process aren't there")
  func counters() throws {
    #expect(anonymousMemory(of: getpid()) > 100_000)
    let before = try ProcessWrites.read(getpid())
    try Descriptor.open("/dev/null", O_WRONLY).writeAll(String(repeating: "x", count: 5000))
    let after = try ProcessWrites.read(getpid())
    #expect(after.bytes >= before.bytes + 5000 && after.calls > before.calls)
    #expect(anonymousMemory(of: Int32.max) == 0)
    #expect(throws: SystemCallError.self) { try ProcessWrites.read(Int32.max) }
  }

  @Test(.enabled(if: access(PressureStall.systemMemoryPath, W_OK) == 0, "no PSI here"))
  func `The kernel accepts a pressure trigger, and a refused window is explained`() throws {
    _ = try PressureStall.read()
    _ = try PressureTrigger()
    _ = try PressureTrigger(.full, stall: .milliseconds(100), window: .seconds(4))
    let error = #expect(throws: PressureTriggerError.self) {
      try PressureTrigger(window: .seconds(30))
    }
    #expect(error?.description.contains("multiples of 2 s") == true)
  }

  @Test func `An event of a pressure trigger without a stall isn't confirmed`() {
    // This is the kernel's first event after the trigger was made, on a machine that had stalled
    // for 21 s before.
    var check = TriggerCheck(stall: .milliseconds(200), total: 21_066_877)
    // The totals are: too little; 1 µs too little; enough; already reported; enough again; a count
    // that decreased.
    let totals: [UInt64] = [21_066_921, 21_266_876, 21_266_877, 21_266_878, 21_466_877, 0]
    let believed = totals.map { check.confirms($0) }
    #expect(believed == [false, false, true, false, true, false])
  }

  @Test func `The error for a kernel without pressure stall information says so`() {
    let error = #expect(throws: PressureTriggerError.self) {
      try PressureTrigger(path: "/proc/pressure/nonsense")
    }
    #expect(error?.description.contains("no pressure stall information") == true)
  }
}
