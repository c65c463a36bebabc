import CLinux
import Glibc
import Linux

/// Says whether a signal that the wrapper got was sent to a whole process group. Tests hand in their own.
protocol GroupWitness: AnyObject {
  /// The witness answers with `WitnessReport.answer` when it has reported what it had got before.
  func ask()
  /// From now on it gets what is sent to this group.
  func join(_ group: Int32)
}

enum WitnessReport: Hashable {
  /// A signal for the group in which the witness is.
  case signal(Int32)
  case answer
}

/// A process in the wrapper's process group that only notes which signals it gets.
///
/// A program with a terminal stays in the group in which the shell has started the wrapper, and the terminal's
/// Ctrl-C or the shell's `kill %1` reaches wrapper and program. The wrapper must not pass these on: the program
/// would get them twice. What is sent to the wrapper alone, it has to pass on. It doesn't see the difference, but
/// this process gets only the first kind.
///
/// A shell in the terminal puts its jobs in other groups. While such a program sleeps, the witness is in the
/// terminal's foreground group, so that the wrapper hears of Ctrl-C and of a new size.
final class SignalWitness: GroupWitness {
  /// Readable if a report waits.
  let channel: Descriptor
  private let pid: Int32

  /// Call it only while the process has one thread, and after the guardian was forked.
  init() throws(SystemCallError) {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    _ = try systemCall("socketpair") { socketpair(AF_UNIX, kind, 0, &ends) }
    let (own, other) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    pid = try shim("fork") { clinux_fork() }
    if pid == 0 { Self.witness(other.raw) }
    channel = own
  }

  /// A full socket means that the witness doesn't run; then there is no answer, and the asker has a deadline.
  private func send(_ word: Int32) {
    var word = word
    let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    _ = Glibc.send(channel.raw, &word, MemoryLayout<Int32>.size, flags)
  }

  func ask() { send(0) }
  func join(_ group: Int32) { send(group) }

  /// All reports that wait; nil: the witness has ended.
  func reports() -> [WitnessReport]? {
    var result: [WitnessReport] = []
    var word: Int32 = 0
    while true {
      let count = recv(
        channel.raw, &word, MemoryLayout<Int32>.size, Int32(MSG_DONTWAIT))
      if count == 0 { return nil }
      if count < 0 { return errno == EAGAIN || errno == EINTR ? result : nil }
      result.append(word == 0 ? .answer : .signal(word))
    }
  }

  /// Ends it: the program has ended.
  func dismiss() {
    shutdown(channel.raw, Int32(SHUT_RDWR))
    waitForChild(pid)
  }

  // MARK: the process itself

  private static func witness(_ channel: Int32) -> Never {
    // A background process that the terminal stops could not report.
    for number in [SIGTTIN, SIGTTOU, SIGPIPE] { signal(number, SIG_IGN) }
    clinux_set_thread_name("dormouse-signal")
    Guardian.letGoOfEverything(but: channel)
    dropOwnCode()
    guard let queue = try? SignalQueue(PassedSignals.passed) else { _exit(1) }
    var watched = [
      pollfd(fd: channel, events: Int16(POLLIN), revents: 0),
      pollfd(fd: queue.raw, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&watched, 2, -1)
      if count < 0, errno != EINTR { _exit(1) }
      // Before the answer to a question: a signal that came first is reported first.
      while case let arrivals = queue.arrivals(), !arrivals.isEmpty {
        for arrival in arrivals { report(arrival.number, to: channel) }
      }
      guard watched[0].revents != 0 else { continue }
      var word: Int32 = 0
      let length = recv(channel, &word, MemoryLayout<Int32>.size, Int32(MSG_DONTWAIT))
      if length < 0, errno == EAGAIN || errno == EINTR { continue }
      // The wrapper has ended.
      guard length == MemoryLayout<Int32>.size else { _exit(0) }
      // A group that has ended meanwhile can't be joined, and sends nothing.
      if word == 0 { report(0, to: channel) } else { setpgid(0, word) }
    }
  }

  private static func report(_ word: Int32, to channel: Int32) {
    var word = word
    let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    _ = Glibc.send(channel, &word, MemoryLayout<Int32>.size, flags)
  }
}
