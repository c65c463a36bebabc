import Daemon
import Linux

/// Wrappers that the program has started (an agent's wrapped servers, a shell's wrapped jobs). They
/// run while the program sleeps, and one may end or be stopped then. The program gets the SIGCHLD
/// for it only when it runs again, so this class wakes it. It belongs to the loop's thread.
final class InnerWrappers {
  private let watches: any DescriptorWatches
  private let timers: any Timers
  private let state: (ProcessIdentity) -> ProcessStat.State?
  private var watched: [(descriptor: Descriptor, token: LoopToken)] = []
  private var timer: LoopToken?
  /// Wrappers that had ended or were stopped while the program still ran. The program has received
  /// SIGCHLD for them.
  private var endedBefore: Set<ProcessIdentity> = []

  /// The interval at which stops are checked: the kernel reports a job's stop only to its parent.
  static let pollInterval = Duration.milliseconds(500)

  /// - Parameter state: reads the state of a process; nil if it has been reaped.
  init(
    watches: any DescriptorWatches, timers: any Timers,
    state: @escaping (ProcessIdentity) -> ProcessStat.State? = InnerWrappers.current
  ) {
    self.watches = watches
    self.timers = timers
    self.state = state
  }

  deinit { unwatch() }

  static func current(_ process: ProcessIdentity) -> ProcessStat.State? {
    // The process has been reaped.
    guard let stat = try? ProcessStat.read(process.pid), stat.identity == process else {
      return nil
    }
    return stat.state
  }

  /// Records the states of the wrappers. The program is about to sleep.
  func programFallsAsleep(_ wrappers: [ProcessStat]) {
    endedBefore = Set(wrappers.filter { $0.state.isEnded || $0.state == .stopped }.map(\.identity))
  }

  /// Watches these wrappers instead of the earlier ones.
  ///
  /// - Parameter seesStops: whether their stops wake the program, too: it has a terminal, and they
  ///   may be its jobs.
  func watch(
    _ wrappers: [ProcessStat], seesStops: Bool, wake: @escaping (_ reason: String) -> Void
  ) {
    unwatch()
    let processes = wrappers.map(\.identity).filter { !endedBefore.contains($0) }
    for process in processes {
      // A process that has been reaped needs no watch. If no descriptor is free, the program isn't
      // woken for this end.
      guard let descriptor = try? Descriptor.pidfd(of: process.pid),
        let token = try? watches.whenReadable(
          descriptor,
          do: { [weak self] in
            self?.unwatch()
            wake("the end of a wrapped child")
          })
      else { continue }
      watched.append((descriptor, token))
    }
    if seesStops, !processes.isEmpty { pollForStops(of: processes, wake) }
  }

  private func pollForStops(
    of processes: [ProcessIdentity], _ wake: @escaping (_ reason: String) -> Void
  ) {
    timer = timers.after(Self.pollInterval) { [weak self] in
      guard let self else { return }
      timer = nil
      if processes.contains(where: { state($0) == .stopped }) {
        unwatch()
        return wake("the stop of a wrapped child")
      }
      pollForStops(of: processes, wake)
    }
  }

  /// Ends all watches, because the program runs.
  func unwatch() {
    for (descriptor, token) in watched { watches.unwatch(descriptor, token) }
    watched = []
    if let timer { timers.cancel(timer) }
    timer = nil
  }
}
