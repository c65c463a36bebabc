import CLinux
import Glibc
import Linux

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
final class SignalWitness {
  private let channel: WordChannel
  let pid: Int32
  /// nil: it has ended already.
  private let process: Descriptor?

  /// Readable if a report waits.
  var descriptor: Descriptor { channel.descriptor }

  /// Call it only while the process has one thread, and after the guardian was forked.
  ///
  /// - Parameter queue: of the signals, which are blocked. A child reads its own there.
  init(_ queue: SignalQueue) throws(SystemCallError) {
    let (own, other) = try WordChannel.pair()
    pid = try shim("fork") { clinux_fork() }
    if pid == 0 { Self.witness(other, queue) }
    channel = own
    // An error means that it has ended.
    process = try? Descriptor.pidfd(of: pid)
  }

  func ask() { channel.send(0) }
  func join(_ group: Int32) { channel.send(group) }

  /// All reports that wait; nil: the witness has ended.
  func reports() -> [WitnessReport]? {
    var result: [WitnessReport] = []
    while true {
      switch channel.receive() {
      case .word(let word): result.append(word == 0 ? .answer : .signal(word))
      case .nothing: return result
      case .ended: return nil
      }
    }
  }

  /// Ends it: the program has ended.
  func dismiss() {
    // It may be stopped, and not read the end of the channel.
    if let process { clinux_pidfd_send_signal(process.raw, SIGKILL) }
    waitForChild(pid)
  }

  // MARK: the process itself

  private static func witness(_ channel: WordChannel, _ queue: SignalQueue) -> Never {
    // A background process that the terminal stops could not report.
    for number in [SIGTTIN, SIGTTOU] { signal(number, SIG_IGN) }
    clinux_set_thread_name("dormouse-signal")
    Guardian.letGoOfEverything(but: [channel.descriptor.raw, queue.raw])
    dropOwnCode()
    while true {
      do throws(SystemCallError) {
        try waitForInput([channel.descriptor, queue.descriptor])
      } catch { _exit(1) }
      // Before the answer to a question: a signal that came first is reported first.
      while case let arrivals = queue.arrivals(), !arrivals.isEmpty {
        for arrival in arrivals where arrival.number != SIGCHLD { channel.send(arrival.number) }
      }
      switch channel.receive() {
      case .nothing: break
      case .ended: _exit(0)
      case .word(0): channel.send(0)
      case .word(let group): joinGroup(group)
      }
    }
  }
}
