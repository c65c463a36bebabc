import CLinux
import Glibc
import Testing

@testable import Linux

@Suite("The next due time of a process") struct DueTimeTests {
  @Test func `A timerfd's fdinfo shows when it is due, and its interval`() {
    let text = """
      pos:\t0
      flags:\t02
      mnt_id:\t15
      clockid: 1
      ticks: 0
      settime flags: 00
      it_value: (59, 750000000)
      it_interval: (60, 0)

      """
    let due = DueTime(fdinfo: Array(text.utf8))
    #expect(due == DueTime(source: .timer, remaining: .milliseconds(59750), whole: .seconds(60)))
    let once = text.replacing("(60, 0)", with: "(0, 0)")
    #expect(DueTime(fdinfo: Array(once.utf8))?.whole == nil)
    let disarmed = once.replacing("(59, 750000000)", with: "(0, 0)")
    #expect(DueTime(fdinfo: Array(disarmed.utf8)) == nil)
    #expect(DueTime(fdinfo: []) == nil)
  }

  @Test func `A timerfd that has expired once and wasn't read is due now`() throws {
    let timer = Descriptor(owning: try shim("timerfd_create") { clinux_timerfd_create() })
    #expect(clinux_timerfd_set(timer.raw, 1) == 0)
    #expect(try pollDescriptor(timer.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    let path = "/proc/self/fdinfo/\(timer.raw)"
    let due = DueTime(fdinfo: try readFile(path))
    #expect(due == DueTime(source: .timer, remaining: .zero, whole: nil))
    _ = try timer.read(upTo: 8)
    #expect(DueTime(fdinfo: try readFile(path)) == nil)
  }

  @Test(
    "A thread's call from before a stop is known while it stands there, and not once it has run")
  func beforeStop() {
    let behind: UInt64 = 0x7f0011
    let on = behind - UInt64(clinux_call_instruction_length())
    let before = WaitingCall("0 0x3 0x7ffd 0x10 0x0 0x0 0x0 0x7ffc00 0x7f0011\n")
    func recorded(_ text: String) -> WaitingCall? {
      CallsBeforeStop.call(after: before, shownAs: text)
    }
    for counter in [behind, on] {
      #expect(recorded("-1 0x7ffc00 0x\(String(counter, radix: 16))\n") == before)
    }
    // The thread may be in another call when it stops, which differs in the first argument only.
    #expect(recorded("running\n") == nil)
    #expect(recorded("-1 0x7ffb00 0x7f0011\n") == nil)
    #expect(recorded("-1 0x7ffc00 0x7f0051\n") == nil)
    let other = "0 0x4 0x7ffd 0x10 0x0 0x0 0x0 0x7ffc00 0x7f0011\n"
    #expect(recorded(other) == WaitingCall(other))
    #expect(CallsBeforeStop.call(after: nil, shownAs: other) == WaitingCall(other))
  }

  @Test func `The next daemon reads the calls that one has recorded before a stop`() throws {
    let call = try #require(
      WaitingCall("22 0x3 0x7ffd 0x10 0xffffffffffffffff 0x0 0x8 0x7ffc00 0x7f0011\n"))
    let text = String(
      decoding: CallsBeforeStop.text(of: [17: call, 4_000_000: call]), as: UTF8.self)
    #expect(CallsBeforeStop.calls(in: text) == [17: call, 4_000_000: call])
    #expect(CallsBeforeStop.calls(in: "") == [:])
    // The text is cut at the end of a line, and then within a line.
    #expect(
      CallsBeforeStop.calls(in: "17 \(call.line)\n18 \(call.line.dropLast(30))") == [17: call])
  }

  @Test(
    "A waiting call's line has its number and six arguments; other lines mean that no call waits")
  func line() {
    let call = WaitingCall("232 0x3 0x7ffd 0x10 0x1388 0x0 0x0 0x7ffc00 0x7f0011\n")
    #expect(
      call
        == WaitingCall(
          number: 232, arguments: [3, 0x7ffd, 16, 5000, 0, 0], stack: 0x7ffc00,
          instruction: 0x7f0011))
    for text in ["running\n", "-1 0x7ffc00 0x7f0011\n", "", "232 0x3\n", "x 1 2 3 4 5 6 7 8"] {
      #expect(WaitingCall(text) == nil)
    }
  }

  #if arch(x86_64)
    @Test func `Relative, absolute and missing time-outs of calls are read from their arguments`() {
      func due(
        _ number: Int64, _ arguments: [UInt64], _ timespec: (Int64, Int64)? = nil
      ) -> WaitingCall.Limit? {
        WaitingCall(number: number, arguments: arguments).limit { address in
          address == 0xabc0 ? timespec : nil
        } socketLimit: { descriptor, isSending in
          descriptor == 4 ? (isSending ? 6_000_000_000 : 5_000_000_000) : nil
        }
      }
      let five = WaitingCall.Limit.relative(5_000_000_000)
      #expect(due(232, [3, 1, 1, 5000, 0, 0]) == five, "epoll_wait")
      #expect(due(232, [3, 1, 1, 0xffff_ffff, 0, 0]) == nil, "for ever")
      #expect(due(7, [1, 1, 5000, 0, 0, 0]) == five, "poll")
      #expect(due(23, [1, 0, 0, 0, 0xabc0, 0], (5, 0)) == five, "select")
      #expect(due(23, [1, 0, 0, 0, 0, 0]) == nil, "select for ever")
      #expect(due(35, [0xabc0, 0, 0, 0, 0, 0], (5, 0)) == five, "nanosleep")
      #expect(due(230, [1, 0, 0xabc0, 0, 0, 0], (5, 0)) == five, "clock_nanosleep")
      #expect(due(230, [1, 1, 0xabc0, 0, 0, 0], (105, 0)) == .monotonic(105_000_000_000))
      #expect(due(230, [0, 1, 0xabc0, 0, 0, 0], (1005, 0)) == .realtime(1_005_000_000_000))
      #expect(due(202, [1, 128, 0, 0xabc0, 0, 0], (5, 0)) == five, "FUTEX_WAIT")
      #expect(due(202, [1, 137, 0, 0xabc0, 0, 0], (105, 0)) == .monotonic(105_000_000_000))
      #expect(due(202, [1, 137, 0, 0, 0, 0]) == nil, "futex for ever")
      #expect(due(449, [1, 1, 0, 0xabc0, 1, 0], (105, 0)) == .monotonic(105_000_000_000))
      #expect(due(441, [3, 1, 1, 0xabc0, 0, 0], (5, 0)) == five, "epoll_pwait2")
      #expect(due(220, [1, 1, 1, 0xabc0, 0, 0], (5, 0)) == five, "semtimedop")
      #expect(due(128, [1, 1, 0xabc0, 8, 0, 0], (5, 0)) == five, "rt_sigtimedwait")
      #expect(due(208, [1, 1, 1, 1, 0xabc0, 0], (5, 0)) == five, "io_getevents")
      #expect(due(243, [1, 1, 1, 1, 0xabc0, 0], (1005, 0)) == .realtime(1_005_000_000_000))
      #expect(due(0, [1, 1, 1, 1, 1, 1]) == nil, "read of a file has none")
      #expect(due(0, [4, 1, 1, 1, 1, 1]) == five, "read with SO_RCVTIMEO")
      #expect(due(1, [4, 1, 1, 1, 1, 1]) == .relative(6_000_000_000), "write with SO_SNDTIMEO")
      // The memory can't be read, or doesn't contain a time.
      #expect(due(35, [0xdead, 0, 0, 0, 0, 0]) == nil)
      #expect(due(35, [0xabc0, 0, 0, 0, 0, 0], (-1, 0)) == nil)
      #expect(due(35, [0xabc0, 0, 0, 0, 0, 0], (.max, 2_000_000_000)) == nil)
    }
  #endif
}
