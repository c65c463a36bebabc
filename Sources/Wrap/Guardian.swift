import CLinux
import Glibc
import Linux

/// A process that cleans up after a killed wrapper. The wrapper's program may be stopped, frozen, or
/// without its memory, and a killed wrapper can't end it.
///
///     wrapper ──────── pipe ───────▶ guardian
///     program ── its own pid ──▶         │ end of the pipe without an endMarker:
///       (before it executes)             ▼ kills the program, removes image and cgroup
///
/// It is a fork from before the first thread, so that it shares all its pages with the wrapper. It
/// leads its own session, so that a signal to the wrapper's process group doesn't end it.
final class Guardian {
  let pid: Int32
  private var pipe: Descriptor?

  /// The descriptor to which the child writes its pid, as four bytes, so that the guardian knows it.
  var announcement: Int32? { pipe?.raw }

  private static let endMarker: Int32 = -1
  /// Only the program's first process is known.
  private static let forgetMarker: Int32 = -2

  /// Call it only while the process has one thread.
  init(directory: String, socket: String) throws(SystemCallError) {
    // The loop writes to it, and the guardian, which only reads, may be stopped.
    let (input, output) = try unblockedPipe()
    _ = fcntl(input.raw, F_SETFL, 0)
    guard try threads(of: getpid()).count == 1 else {
      throw SystemCallError("fork", on: "a process with several threads", code: EDEADLK)
    }
    pid = try shim("fork") { clinux_fork() }
    if pid == 0 { Self.guardNow(input.raw, directory: directory, socket: socket) }
    pipe = output
  }

  /// The program sleeps, and these are all of its processes: if its first process ends together with the wrapper, the
  /// others can't be found any more.
  func know(_ pids: [Int32]) { send([Self.forgetMarker] + pids) }

  /// The program runs.
  func forget() { send([Self.forgetMarker]) }

  private func send(_ words: [Int32]) {
    guard let pipe else { return }
    // A write this small happens as a whole, or not at all if the guardian doesn't read.
    for start in stride(from: 0, to: words.count, by: 1024) {
      let part = Array(words[start..<min(start + 1024, words.count)])
      part.withUnsafeBytes { _ = write(pipe.raw, $0.baseAddress, $0.count) }
    }
  }

  /// Ends the guardian: the program has ended, and nothing is left to clean up.
  func dismiss() {
    if pipe == nil { return }
    signal(SIGPIPE, SIG_IGN)
    send([Self.endMarker])
    self.pipe = nil
    waitForChild(pid)
  }

  private static func guardNow(_ input: Int32, directory: String, socket: String) -> Never {
    setsid()
    // The wrapper itself passes on the signals that are meant for it.
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE] {
      signal(number, SIG_IGN)
    }
    clinux_set_thread_name("dormouse-guard")
    letGoOfEverything(but: [input])
    // The guardian doesn't need the code that the wrapper has used so far.
    dropOwnCode()
    var known: [ProcessIdentity] = []
    var word: Int32 = 0
    while true {
      let count = kernelResult { read(input, &word, MemoryLayout<Int32>.size) }
      if count == -Int(EINTR) { continue }
      if count != MemoryLayout<Int32>.size { break }
      if word == endMarker { _exit(0) }
      if word == forgetMarker {
        known.removeSubrange(min(1, known.count)...)
        continue
      }
      // Without a stat the process has ended.
      if let stat = try? ProcessStat.read(word), !known.contains(stat.identity) {
        known.append(stat.identity)
      }
    }
    WrapStore.clearAway(directory, socket: socket, known: known)
    _exit(0)
  }

  /// Closes inherited descriptors: a reader that waits for the end of a pipe must not wait for the guardian.
  static func letGoOfEverything(but kept: [Int32]) {
    for name in (try? listDirectory("/proc/self/fd")) ?? [] {
      if let number = Int32(name), number > STDERR_FILENO, !kept.contains(number) { close(number) }
    }
    Standard.occupy([STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO])
  }
}

enum Standard {
  /// Puts /dev/null in their place.
  static func occupy(_ descriptors: [Int32]) {
    guard let null = try? Descriptor.open("/dev/null", O_RDWR) else { return }
    for number in descriptors where number != null.raw { dup2(null.raw, number) }
  }

  /// Puts /dev/null in the place of a standard input at its end. A Jupyter server closes its end at once, and that
  /// would end the kernel's first sleep. A reader finds the end there as well.
  static func replaceEndedInput() {
    if Descriptor.inputEvents(of: STDIN_FILENO) == Int16(POLLHUP) { occupy([STDIN_FILENO]) }
  }
}
