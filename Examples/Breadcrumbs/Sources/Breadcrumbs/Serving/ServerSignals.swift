import Glibc

/// SIGTERM, SIGINT and SIGHUP as a byte in a pipe, which the server waits for like any other input.
enum Signals {
  /// The pipe is created before the handlers are set, which only write to it.
  private static let pipe: (reading: Int32, writing: Int32) = {
    var ends: [Int32] = [-1, -1]
    return Glibc.pipe(&ends) == 0 ? (ends[0], ends[1]) : (-1, -1)
  }()

  /// Handles these signals: from now on they don't end the program by themselves.
  static func catchThem() {
    _ = pipe
    for wanted in [SIGTERM, SIGINT, SIGHUP] {
      signal(wanted) { _ in
        let before = errno
        _ = write(Signals.pipe.writing, "!", 1)
        errno = before
      }
    }
    signal(SIGPIPE, SIG_IGN)
  }

  /// Waits until one of the descriptors is readable. The result is false if a signal arrived.
  static func wait(_ descriptors: inout [pollfd]) -> Bool {
    descriptors.append(pollfd(fd: pipe.reading, events: Int16(POLLIN), revents: 0))
    while poll(&descriptors, nfds_t(descriptors.count), -1) < 0, errno == EINTR {}
    return descriptors.removeLast().revents == 0
  }
}
