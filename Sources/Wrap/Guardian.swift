import CLinux
import Glibc
import Linux

/// A process that cleans up after a killed wrapper. The wrapper's program may be stopped, frozen or
/// without its memory then, and nothing else would end it.
///
///     wrapper ──────── pipe ───────▶ guardian
///     program ── its own pid ──▶         │ end of the pipe without an endMarker:
///       (before it executes)             ▼ kills the program, removes image and cgroup
///
/// The guardian is forked before the wrapper has a second thread, and shares all its pages with the
/// wrapper. It leads its own session, so that a signal to the wrapper's process group doesn't end
/// it.
final class Guardian {
  let pid: Int32
  private var pipe: Descriptor?

  /// The descriptor to which the child writes its pid, as four bytes, so that the guardian can
  /// record it.
  var announcement: Int32? { pipe?.raw }

  private static let endMarker: Int32 = -1
  /// From this value on, the guardian records only the program's first process.
  private static let forgetMarker: Int32 = -2

  /// Call it only while the process has one thread.
  init(directory: String, socket: String) throws(SystemCallError) {
    // The event loop writes to the pipe and must not block. The guardian, which only reads, may
    // block.
    let (input, output) = try unblockedPipe()
    _ = fcntl(input.raw, F_SETFL, 0)
    guard try threads(of: getpid()).count == 1 else {
      throw SystemCallError("fork", on: "a process with several threads", code: EDEADLK)
    }
    pid = try shim("fork") { clinux_fork() }
    if pid == 0 { Self.guardProgram(input.raw, directory: directory, socket: socket) }
    pipe = output
  }

  /// Records all processes of a program that sleeps. If its first process ends together with the
  /// wrapper, the guardian couldn't find the others any more.
  func record(_ pids: [Int32]) { send([Self.forgetMarker] + pids) }

  /// Removes all processes but the first, because the program runs.
  func forgetDescendants() { send([Self.forgetMarker]) }

  private func send(_ values: [Int32]) {
    guard let pipe else { return }
    // The kernel writes so few bytes completely, or not at all if the guardian doesn't read.
    for start in stride(from: 0, to: values.count, by: 1024) {
      let chunk = Array(values[start..<min(start + 1024, values.count)])
      chunk.withUnsafeBytes { _ = write(pipe.raw, $0.baseAddress, $0.count) }
    }
  }

  /// Ends the guardian because the program has ended, and nothing is left to clean up.
  func dismiss() {
    if pipe == nil { return }
    signal(SIGPIPE, SIG_IGN)
    send([Self.endMarker])
    self.pipe = nil
    waitForChild(pid)
  }

  private static func guardProgram(_ input: Int32, directory: String, socket: String) -> Never {
    setsid()
    // The wrapper itself passes on the signals that are meant for it.
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE] {
      signal(number, SIG_IGN)
    }
    clinux_set_thread_name("dormouse-guard")
    closeDescriptors(except: [input])
    // The guardian doesn't need the code that the wrapper has used up to now.
    releaseUnusedCode()
    var processes: [ProcessIdentity] = []
    var word: Int32 = 0
    while true {
      let count = kernelResult { read(input, &word, MemoryLayout<Int32>.size) }
      if count == -Int(EINTR) { continue }
      if count != MemoryLayout<Int32>.size { break }
      if word == endMarker { _exit(0) }
      if word == forgetMarker {
        processes.removeSubrange(min(1, processes.count)...)
        continue
      }
      // Without a stat the process has ended.
      if let stat = try? ProcessStat.read(word), !processes.contains(stat.identity) {
        processes.append(stat.identity)
      }
    }
    WrapStore.cleanUp(directory, socket: socket, roots: processes)
    _exit(0)
  }

  /// Closes inherited descriptors: a reader that waits for the end of a pipe must not wait for the
  /// guardian. Descriptors 0 to 2 become /dev/null.
  static func closeDescriptors(except kept: [Int32]) {
    for name in (try? listDirectory("/proc/self/fd")) ?? [] {
      if let number = Int32(name), number > STDERR_FILENO, !kept.contains(number) { close(number) }
    }
    Standard.occupy([STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO])
  }
}

enum Standard {
  /// Replaces these descriptors by /dev/null.
  static func occupy(_ descriptors: [Int32]) {
    guard let null = try? Descriptor.open("/dev/null", O_RDWR) else { return }
    for number in descriptors where number != null.raw { dup2(null.raw, number) }
  }

  /// Replaces standard input by /dev/null if its other end is closed. A Jupyter server closes that
  /// end at once, and the hang-up would end the kernel's first sleep. A reader of /dev/null sees
  /// the end, too.
  static func replaceEndedInput() {
    if Descriptor.inputEvents(of: STDIN_FILENO) == Int16(POLLHUP) { occupy([STDIN_FILENO]) }
  }
}
