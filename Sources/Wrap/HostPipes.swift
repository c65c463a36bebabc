import Daemon
import Glibc
import Linux

/// Notices that the program's host has closed its ends of the program's standard input and output:
/// no request can reach the program any more, and nothing reads its answers. Some servers ignore
/// the end of their input, and would stay for ever.
///
/// The wrapper has no copy of the program's descriptors, because it wouldn't see a hang-up then. An
/// epoll instance keeps no copy either: it reports on an open file while the program has it open.
/// Belongs to the loop's thread.
final class HostPipes {
  private let watches: any DescriptorWatches
  private let timers: any Timers
  private let grace: Duration
  private let isAbandoned: () -> Void
  private let input: Epoll
  private let output: Epoll

  /// Call it while this process still has the descriptors, and before the program is started.
  ///
  /// - Parameters:
  ///   - input, output: the program's standard input and output.
  ///   - grace: from the end of both until `isAbandoned` is called. The program has seen the end of
  ///     its input by then.
  /// - Returns: nil: they can't be watched, or not both are pipes or sockets. Then their end says
  ///   nothing about a host: a batch job reads a pipe and writes a file.
  init?(
    input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, grace: Duration,
    watches: any DescriptorWatches, timers: any Timers, isAbandoned: @escaping () -> Void
  ) {
    guard Self.mayHangUp(input), Self.mayHangUp(output) else { return nil }
    do throws(SystemCallError) {
      self.input = try Epoll()
      self.output = try Epoll()
      // Errors and hang-ups are always reported.
      try self.input.add(input, .peerHangUp, token: 0)
      try self.output.add(output, [], token: 0)
    } catch { return nil }
    self.grace = grace
    self.watches = watches
    self.timers = timers
    self.isAbandoned = isAbandoned
  }

  private static func mayHangUp(_ descriptor: Int32) -> Bool {
    guard let status = fileStatus(of: "/proc/self/fd/\(descriptor)") else { return false }
    return [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
  }

  /// Waits for the end of both, the input's first.
  func watch() {
    wait(for: input) { [weak self] in
      guard let self else { return }
      wait(for: output) { [weak self] in self?.beginGrace() }
    }
  }

  private func wait(for end: Epoll, then: @escaping () -> Void) {
    var token: LoopToken?
    // Without this watch the program stays, as it would without a wrapper.
    token = try? watches.whenReadable(end.descriptor) { [watches] in
      // An end lasts, and would keep the loop busy.
      if let token { watches.unwatch(end.descriptor, token) }
      then()
    }
  }

  private func beginGrace() {
    timers.after(grace) { [weak self] in
      guard let self else { return }
      // Named pipes can have another reader and writer by now.
      if hasEnded(input), hasEnded(output) { isAbandoned() } else { watch() }
    }
  }

  private func hasEnded(_ end: Epoll) -> Bool {
    // An error means that nothing is known: the program is left alone.
    (try? end.wait(milliseconds: 0).isEmpty) == false
  }
}
