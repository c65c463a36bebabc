import Daemon
import Linux

/// Wrappers that the program has started (an agent's wrapped servers, a shell's wrapped jobs). They run while the
/// program sleeps, and one may end or be stopped then: the SIGCHLD for it waits until the program runs again. Belongs
/// to the loop's thread.
final class InnerWrappers {
  private let watches: any DescriptorWatches
  private let timers: any Timers
  private let state: (ProcessIdentity) -> ProcessStat.State?
  private var watched: [(descriptor: Descriptor, token: LoopToken)] = []
  private var look: LoopToken?
  /// While the program still ran, these had ended or were stopped: the program has heard of that.
  private var known: Set<ProcessIdentity> = []

  /// A job's stop isn't announced to anything but its parent.
  static let pace = Duration.milliseconds(500)

  /// - Parameter state: nil: the process has been reaped.
  init(
    watches: any DescriptorWatches, timers: any Timers,
    state: @escaping (ProcessIdentity) -> ProcessStat.State? = InnerWrappers.current
  ) {
    self.watches = watches
    self.timers = timers
    self.state = state
  }

  deinit { forget() }

  static func current(_ process: ProcessIdentity) -> ProcessStat.State? {
    // It has been reaped.
    guard let stat = try? ProcessStat.read(process.pid), stat.identity == process else {
      return nil
    }
    return stat.state
  }

  /// The program is about to sleep.
  func programFallsAsleep(_ wrappers: [ProcessStat]) {
    known = Set(wrappers.filter { $0.state.isEnded || $0.state == .stopped }.map(\.identity))
  }

  /// In place of those that were watched.
  ///
  /// - Parameter seesStops: their stops wake the program, too (it has a terminal, and they may be its jobs).
  func watch(
    _ wrappers: [ProcessStat], seesStops: Bool, wake: @escaping (_ reason: String) -> Void
  ) {
    forget()
    let news = wrappers.map(\.identity).filter { !known.contains($0) }
    for process in news {
      // One that has been reaped needs no watch. Without descriptors the program isn't woken for this end.
      guard let descriptor = try? Descriptor.pidfd(of: process.pid),
        let token = try? watches.whenReadable(
          descriptor,
          do: { [weak self] in
            self?.forget()
            wake("the end of a wrapped child")
          })
      else { continue }
      watched.append((descriptor, token))
    }
    if seesStops, !news.isEmpty { lookForStops(of: news, wake) }
  }

  private func lookForStops(
    of processes: [ProcessIdentity], _ wake: @escaping (_ reason: String) -> Void
  ) {
    look = timers.after(Self.pace) { [weak self] in
      guard let self else { return }
      look = nil
      if processes.contains(where: { state($0) == .stopped }) {
        forget()
        return wake("the stop of a wrapped child")
      }
      lookForStops(of: processes, wake)
    }
  }

  /// The program runs.
  func forget() {
    for (descriptor, token) in watched { watches.unwatch(descriptor, token) }
    watched = []
    if let look { timers.cancel(look) }
    look = nil
  }
}
