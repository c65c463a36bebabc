import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Corrections of timeouts") struct TimeoutCorrectionTests {
  #if arch(x86_64)
    private static func correction(
      _ number: Int64, _ arguments: [UInt64], limit: Int64, waited: Int64, rested: Int64 = 0,
      wroteRemainder: Bool = true
    ) -> TimeoutCorrection {
      TimeoutCorrection.of(
        WaitingCall(number: number, arguments: arguments), limit: limit, waited: waited,
        rested: rested, wroteRemainder: wroteRemainder)
    }

    private static let second: Int64 = 1_000_000_000

    @Test("A timeout in a register becomes the remaining time, rounded up, and 0 if it is overdue")
    func register() {
      let arguments: [UInt64] = [3, 1, 1, 5000, 0, 0]
      for number in [Int64(232), 281] {  // epoll_wait, epoll_pwait
        func left(after waited: Int64) -> TimeoutCorrection {
          Self.correction(number, arguments, limit: 5 * Self.second, waited: waited)
        }
        #expect(left(after: 0) == .argument(index: 3, value: 5000, number: number))
        #expect(left(after: 1) == .argument(index: 3, value: 5000, number: number))
        #expect(left(after: 1_000_001) == .argument(index: 3, value: 4999, number: number))
        #expect(left(after: 9 * Self.second) == .argument(index: 3, value: 0, number: number))
      }
    }

    @Test("A call of epoll_pwait2 continues as epoll_pwait, unless its time doesn't fit there")
    func epoll() {
      let arguments: [UInt64] = [3, 1, 1, 0xabc0, 0, 8]
      #expect(
        Self.correction(441, arguments, limit: 5 * Self.second, waited: 2 * Self.second)
          == .argument(index: 3, value: 3000, number: 281))
      #expect(
        Self.correction(441, arguments, limit: 3_000_000 * Self.second, waited: 0) == .nothing)
    }

    @Test("A remaining time that the kernel has written is reduced in place by the time asleep")
    func remainder() {
      let arguments: [UInt64] = [1, 1, 0xabc0, 0, 0xdef0, 0]
      // The unit of ppoll is nanoseconds, that of select microseconds.
      #expect(
        Self.correction(
          271, arguments, limit: 5 * Self.second, waited: 9 * Self.second, rested: 2_000_000_001)
          == .remainder(address: 0xabc0, seconds: 2, fraction: 999_999_999))
      #expect(
        Self.correction(
          23, arguments, limit: 5 * Self.second, waited: 9 * Self.second, rested: 2_000_000_001)
          == .remainder(address: 0xdef0, seconds: 3, fraction: 0))
      #expect(
        Self.correction(
          271, arguments, limit: 5 * Self.second, waited: 2 * Self.second, wroteRemainder: false)
          == .pointer(index: 2, seconds: 3, nanoseconds: 0))
    }

    @Test func `A time in memory that the program may use again isn't changed`() {
      for (number, index) in [(Int64(220), Int32(3)), (128, 2), (208, 4)] {
        #expect(
          Self.correction(
            number, [0xabc0, 0xabc0, 0xabc0, 0xabc0, 0xabc0, 0], limit: 5 * Self.second,
            waited: 4_999_999_999) == .pointer(index: index, seconds: 0, nanoseconds: 1))
      }
    }

    @Test func `A call with its socket's timeout ends when it is overdue, and not before`() {
      let arguments: [UInt64] = [7, 0, 0, 0, 0, 0]
      #expect(Self.correction(45, arguments, limit: 5, waited: 4) == .nothing)
      #expect(
        Self.correction(45, arguments, limit: 5, waited: 5)
          == .endUnlessReady(descriptor: 7, isSending: false))
      #expect(
        Self.correction(44, arguments, limit: 5, waited: 5)
          == .endUnlessReady(descriptor: 7, isSending: true))
    }

    @Test("A timeout at the end of all addresses has pages, although no such memory exists")
    func lastAddress() {
      // The indices of struct user_regs_struct, for semtimedop, which is made again: r10 (the
      // fourth argument), rax, orig_rax and rsp.
      let values: [Int: UInt64] = [
        7: UInt64.max - 7, 10: UInt64(bitPattern: -514), 15: 220, 19: 1 << 40,
      ]
      var registers = clinux_registers()
      registers.length = 27 * 8
      withUnsafeMutableBytes(of: &registers) { bytes in
        for (index, value) in values {
          bytes.storeBytes(of: value, toByteOffset: index * 8, as: UInt64.self)
        }
      }
      #expect(registers.timePages.contains(UInt64.max / pageSize * pageSize))
    }

    @Test func `Calls with an absolute end aren't corrected`() {
      // The calls are poll, nanosleep, clock_nanosleep, futex, futex_waitv, mq_timedreceive and
      // restart_syscall.
      for number in [Int64(7), 35, 230, 202, 449, 243, 219] {
        #expect(
          Self.correction(number, [0, 0, 0, 0, 0, 0], limit: 5, waited: 9) == .nothing)
      }
    }
  #endif

  @Test func `A socket's timeout that never passes counts as none`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    let sockets = ends.map { Descriptor(owning: $0) }
    for (seconds, limit) in [
      (0, 0), (3, 3_000_000_000), (4_294_967_295, 4_294_967_295_000_000_000), (4_294_967_296, 0),
      (9_223_372_036, 0), (9_223_372_036_854, 0),
    ] as [(Int, Int64)] {
      var time = timeval(tv_sec: seconds, tv_usec: 0)
      let length = socklen_t(MemoryLayout<timeval>.size)
      for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
        try #require(setsockopt(sockets[0].raw, SOL_SOCKET, option, &time, length) == 0)
        #expect(clinux_socket_timeout(sockets[0].raw, option == SO_SNDTIMEO ? 1 : 0) == limit)
      }
    }
  }

  @Test func `Only sockets are duplicated to read the timeout of a call`() throws {
    let reader = WaitReader(pid: getpid())
    let (pipe, directory) = (try Descriptor.pipe(), try Descriptor.open("/"))
    let connection = Descriptor(owning: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    withExtendedLifetime((pipe, directory, connection)) {
      for file in [pipe.reading, pipe.writing, directory] {
        #expect(reader.duplicate(file.raw) == nil)
      }
      #expect(reader.duplicate(connection.raw) != nil)
    }
  }

  @Test func `The scheduler's file shows when a thread last ran, and how often it has waited`() {
    let text = """
      cat (7138, #threads: 1)
      -------------------------------------------------------------------
      se.exec_start                                :       1878670.759121
      se.vruntime                                  :           361.346851
      nr_switches                                  :                   12
      nr_voluntary_switches                        :                    9
      nr_involuntary_switches                      :                    3

      """
    #expect(
      ThreadRun(sched: Array(text.utf8), processor: 3)
        == ThreadRun(lastRan: 1_878_670_759_121, processor: 3, waits: 9))
    let moved = text.replacing("1878670.759121", with: "0.000000")
    #expect(ThreadRun(sched: Array(moved.utf8), processor: 3) == nil)
    #expect(ThreadRun(sched: [], processor: 3) == nil)
  }

  @Test("The time that a thread has waited is measured to a few milliseconds, and never too long")
  func measured() throws {
    let child = try TestChild(
      "python3", "-c",
      "import select; e = select.epoll(); print('ready', flush=True); e.poll(600)")
    _ = try child.line()
    #expect(
      try eventually {
        WaitingCall.read(thread: child.pid, of: child.pid)?.again == CLINUX_AGAIN_FROM_REGISTER
      })
    let latest = Clocks.monotonic
    usleep(200_000)
    let waits = TimedWaits()
    let lookedAt = Clocks.monotonic
    waits.recordCalls(of: try child.tree())
    _ = try child.stopTree()
    waits.recordStop(of: try child.tree())
    let measuring = Clocks.monotonic - lookedAt
    // Without the scheduler's data (an old kernel), only the time asleep counts.
    guard ThreadRun.read(thread: child.pid, of: child.pid) != nil else {
      return notTestedHere("this kernel doesn't say when a thread last ran")
    }
    let began = try #require(waits.kept?.began[child.pid])
    // An interruption of the measurement makes its result later, at most by its own duration.
    #expect(began <= latest + 5_000_000 + measuring)
    #expect(began > latest - 10_000_000_000)
    let again = TimedWaits(try #require(waits.kept))
    #expect(again.kept?.restsSince == waits.kept?.restsSince)
    #expect(
      again.waited(child.pid, since: began + 7) == 7, "a later daemon counts from the same moment")
    waits.didWake()
    #expect(waits.kept == nil)
  }

  @Test func `A thread that begins to wait after its calls were recorded was working`() throws {
    if clinux_stop_hides_calls() == 1 { return notTestedHere("a stop hides calls here") }
    let program = """
      import signal, time
      signal.pthread_sigmask(signal.SIG_BLOCK, [10])
      print('ready', flush=True)
      signal.sigwait([10])
      time.sleep(600)
      """
    let child = try TestChild("python3", "-c", program)
    _ = try child.line()
    let (early, late, tree) = (TimedWaits(), TimedWaits(), try child.tree())
    early.recordCalls(of: tree)
    kill(child.pid, SIGUSR1)
    let sleeps = try eventually {
      late.recordCalls(of: tree)
      late.recordStop(of: tree)
      return !late.dueTimes.isEmpty
    }
    #expect(sleeps)
    late.recordCalls(of: tree)
    _ = try child.stopTree()
    for waits in [early, late] { waits.recordStop(of: tree) }
    #expect(early.unrecordedThread(in: tree) == child.pid)
    #expect(late.unrecordedThread(in: tree) == nil)
  }

  @Test func `A timeout that was corrected once isn't corrected again after a failed wake`() {
    let waits = TimedWaits(TimedWaits.Kept(restsSince: 1000, began: [5: 400]))
    #expect(waits.waited(5, since: 2000) == 1600)
    #expect(waits.rested(5, since: 2000) == 1000)
    waits.didCorrect(5, now: 2000, call: nil)
    #expect(waits.waited(5, since: 2500) == 500)
    #expect(waits.rested(5, since: 2500) == 500)
  }
}

extension TimedWaits {
  fileprivate func recordCalls(of tree: ProcessTree) { willRest(tree) }
  fileprivate func recordStop(of tree: ProcessTree) { didRest(tree) }
}
