import CLinux
import Glibc
import Linux

enum WitnessReport: Hashable {
  /// The witness has received a signal for its process group.
  case signal(Int32)
  /// The witness has reported everything that it received before the question.
  case answer
}

/// A process in the wrapper's process group that only reports which signals it receives.
///
/// A program with a terminal stays in the group in which the shell has started the wrapper. The
/// terminal's Ctrl-C, or the shell's `kill %1`, reaches wrapper and program. The wrapper must not
/// pass these signals on: the program would receive them twice. Signals that are sent to the
/// wrapper alone must be passed on. The wrapper can't see the difference, but the witness only
/// receives signals for the group.
///
/// A shell in the terminal puts its jobs in other groups. While such a program sleeps, the witness
/// is in the terminal's foreground group, so that the wrapper learns of Ctrl-C and of a new size.
final class SignalWitness {
  private let channel: WordChannel
  let pid: Int32
  /// The witness's pidfd; nil if it has ended already.
  private let process: Descriptor?

  /// Readable if a report waits.
  var descriptor: Descriptor { channel.descriptor }

  /// Call it only while the process has one thread, and after the guardian was forked.
  ///
  /// - Parameter queue: the queue of the blocked signals. In the child it contains the child's own
  ///   signals.
  init(_ queue: SignalQueue) throws(SystemCallError) {
    let (wrapperEnd, witnessEnd) = try WordChannel.pair()
    pid = try shim("fork") { clinux_fork() }
    if pid == 0 { Self.witness(witnessEnd, queue) }
    channel = wrapperEnd
    // An error means that the witness has ended.
    process = try? Descriptor.pidfd(of: pid)
  }

  /// Asks the witness to report what it has received, and then to answer.
  func ask() { channel.send(0) }
  /// Moves the witness to another process group.
  func join(_ group: Int32) { channel.send(group) }

  /// All reports that wait, or nil if the witness has ended.
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

  /// Ends the witness, because the program has ended.
  func dismiss() {
    // The witness may be stopped, and wouldn't read the end of the channel then.
    if let process { clinux_pidfd_send_signal(process.raw, SIGKILL) }
    waitForChild(pid)
  }

  // MARK: the process itself

  private static func witness(_ channel: WordChannel, _ queue: SignalQueue) -> Never {
    // If the terminal stopped this background process, it couldn't report.
    for number in [SIGTTIN, SIGTTOU] { signal(number, SIG_IGN) }
    clinux_set_thread_name("dormouse-signal")
    Guardian.closeDescriptors(except: [channel.descriptor.raw, queue.raw])
    releaseUnusedCode()
    while true {
      do throws(SystemCallError) {
        try waitForInput([channel.descriptor, queue.descriptor])
      } catch { _exit(1) }
      // The queue is read before a question is answered, so that earlier signals are reported
      // first.
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
