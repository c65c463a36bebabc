import Glibc
import Linux

/// A small shell as a test process. One socket is its input and its output. If this process is
/// killed, the shell reads the end of the socket and ends.
final class ProbeChild {
  let process: SpawnedProcess
  private let channel: Descriptor
  private var ended = false

  var pid: Int32 { process.pid }

  /// A script that repeats its input line by line.
  static let echo = "while read x; do echo \"$x\"; done"

  init(_ script: String, cgroup: WorkerCgroup? = nil) throws {
    let (ours, theirs) = try Descriptor.socketPair(.stream)
    let null = try Descriptor.open("/dev/null", O_RDWR)
    process = try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", script], environment: [:], directory: "/",
        input: theirs.raw, output: theirs.raw, error: null.raw, cgroup: cgroup?.directory.raw))
    channel = ours
  }

  deinit { end() }

  func send(_ line: String) throws(SystemCallError) {
    let bytes = Array("\(line)\n".utf8)
    // Without MSG_NOSIGNAL a child that has ended would end this process by SIGPIPE.
    _ = try shim("send", on: "pid \(pid)") { channel.send(bytes, waits: true) }
  }

  /// Returns the shell's next line. The result is nil if the shell prints no line within the time,
  /// or has ended.
  func line(within timeout: Duration = .seconds(5)) throws(SystemCallError) -> String? {
    var bytes: [UInt8] = []
    let deadline = Deadline(in: timeout)
    while try pollDescriptor(channel.raw, for: POLLIN, until: deadline) {
      let byte = try channel.read(upTo: 1)
      if byte.isEmpty { return nil }
      if byte == [UInt8(ascii: "\n")] { return String(decoding: bytes, as: UTF8.self) }
      bytes += byte
    }
    return nil
  }

  /// Returns whether the shell runs and answers correctly.
  func answers() throws(SystemCallError) -> Bool {
    try send("ping")
    return try line() == "ping"
  }

  /// Kills the shell and waits for its end. The shell must not be traced any more.
  func end() {
    if ended { return }
    ended = true
    sendSignal(SIGKILL, to: pid)
    // The pidfd is waited for first, with a deadline: a kernel that can't end the process must not
    // block this one forever.
    let deadline = Deadline(in: .seconds(5))
    guard (try? pollDescriptor(process.pidfd.raw, for: POLLIN, until: deadline)) == true else {
      return
    }
    waitForChild(pid)
  }
}
