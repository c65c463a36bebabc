import Daemon
import Glibc
import Linux

/// Detects that the host has closed its ends of the program's standard input and output. No request
/// can reach the program any more then, and nothing reads its answers. Some servers ignore the end
/// of their input, and would never end.
///
/// The wrapper has no copy of the program's descriptors: with a copy it couldn't see a hang-up. An
/// epoll instance keeps no copy either: it reports on an open file while the program has it open.
/// It belongs to the loop's thread.
final class HostPipes {
  private let watches: any DescriptorWatches
  private let timers: any Timers
  private let grace: Duration
  private let isAbandoned: () -> Void
  /// The program's standard input and output, in this order, if they are pipes or sockets.
  private let ends: [Epoll]
  /// True if both are watched. The end of only one shows that the host has ended only if that is
  /// known otherwise.
  var hasBoth: Bool { ends.count == 2 }

  /// Call it while this process still has the descriptors, before the program is started. It
  /// returns nil if they can't be watched, or aren't pipes or sockets.
  ///
  /// - Parameters:
  ///   - input: the program's standard input.
  ///   - output: the program's standard output.
  ///   - needsBoth: if true, both must be pipes or sockets. The end of one of them says nothing
  ///     about a host: a batch job reads a pipe and writes a file.
  ///   - grace: the time from the end of both until `isAbandoned` is called. The program has seen
  ///     the end of its input by then.
  init?(
    input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, needsBoth: Bool = true,
    grace: Duration, watches: any DescriptorWatches, timers: any Timers,
    isAbandoned: @escaping () -> Void
  ) {
    // Errors and hang-ups are reported without being requested.
    let both: [(descriptor: Int32, events: Epoll.Interest)] = [(input, .peerHangUp), (output, [])]
    let pipes = both.filter { Self.mayHangUp($0.descriptor) }
    guard pipes.count >= (needsBoth ? 2 : 1) else { return nil }
    do throws(SystemCallError) {
      ends = try pipes.map { pipe throws(SystemCallError) in
        let end = try Epoll()
        try end.add(pipe.descriptor, pipe.events, token: 0)
        return end
      }
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

  /// Waits for the end of all pipes, first that of the input.
  func watch() { wait(for: ends[...]) }

  private func wait(for ends: ArraySlice<Epoll>) {
    guard let end = ends.first else { return beginGrace() }
    var token: LoopToken?
    // If the watch fails, the program stays, as it would without a wrapper.
    token = try? watches.whenReadable(end.descriptor) { [weak self, watches] in
      // An end stays readable, and would keep the loop busy.
      if let token { watches.unwatch(end.descriptor, token) }
      self?.wait(for: ends.dropFirst())
    }
  }

  private func beginGrace() {
    timers.after(grace) { [weak self] in
      guard let self else { return }
      // Named pipes can have another reader and writer by now.
      if ends.allSatisfy(hasEnded) { isAbandoned() } else { watch() }
    }
  }

  private func hasEnded(_ end: Epoll) -> Bool {
    // An error means that the state isn't known. The program is not stopped then.
    (try? end.wait(milliseconds: 0).isEmpty) == false
  }
}
