import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Sockets that the daemon opens") struct ListenTests {
  /// A server that takes its socket from LISTEN_FDS, sends its pid and a count to each client, and
  /// exits with status 0 on `end`.
  private static let server = """
        command:
          - python3
          - -c
          - |
            import os, socket
            assert os.environ['LISTEN_PID'] == str(os.getpid())
            count = int(os.environ['LISTEN_FDS'])
            names = os.environ['LISTEN_FDNAMES']
            s = socket.socket(fileno=3)
            print('up', count, names, s.getblocking(), flush=True)
            served = 0
            while True:
              c, _ = s.accept()
              word = c.recv(100).decode()
              served += 1
              c.sendall(f'{os.getpid()} {served} {word}'.encode())
              c.close()
              if word == 'end': break
    """

  private func talk(_ address: String, _ word: String) throws -> [String] {
    // A separate program, as socat would be: it waits until the worker answers.
    let script = """
      import socket, sys
      a = sys.argv[1]
      s = socket.socket(socket.AF_UNIX) if a[0] in '/@' else socket.socket()
      s.settimeout(60)
      s.connect(a if a[0] == '/' else '\\0' + a[1:] if a[0] == '@' else ('127.0.0.1', int(a)))
      s.sendall(sys.argv[2].encode())
      print(s.recv(100).decode())
      """
    let scratch = try Scratch()
    let outcome = try Command(arguments: ["python3", "-c", script, address, word]).run(in: scratch)
    guard outcome.code == 0 else { throw TestFailure("\(address): \(outcome)") }
    return outcome.output.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  @Test(
    "A connection starts a worker that doesn't run, and the worker serves it, also after it ended")
  func activation() throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      """
      workers:
        lazy:
      \(Self.server)
          listen: { http: \(port), admin: ./admin.sock }
          autostart: false
      """)
    #expect(try daemon.worker("lazy").state == "terminated")
    let first = try talk("\(port)", "hello")
    #expect(first.dropFirst() == ["1", "hello"])
    #expect(try daemon.worker("lazy").pid.map { "\($0)" } == first.first)
    let log = daemon.workerLog("lazy")
    #expect(log.hasPrefix("up 2 http:admin True\n"), "\(log)")

    // It exits with status 0, and the next connection starts another run.
    #expect(try talk("\(port)", "end").dropFirst() == ["2", "end"])
    try daemon.wait("lazy", toBe: "terminated")
    let second = try talk("\(port)", "hello")
    #expect(second.dropFirst() == ["1", "hello"])
    #expect(second.first != first.first)

    // A termination, as for memory, doesn't change that.
    try daemon.done("terminate", "lazy")
    #expect(try talk("\(port)", "again").dropFirst() == ["1", "again"])

    // A worker that `stop` ended stays stopped, and the daemon removes the socket file when it
    // ends.
    try daemon.done("stop", "lazy")
    let path = "\(daemon.scratch.path)/admin.sock"
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    daemon.stop(timeout: .seconds(60))
    #expect(access(path, F_OK) != 0)
  }

  @Test(arguments: Nightly.one(of: Setting.ofTestUser))
  func `A connection to a hibernated worker's socket wakes it`(setting: Setting) throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      """
      workers:
        web:
      \(Self.server)
          listen: \(port)
          readiness: { log_line: up }
      """, setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let pid = try talk("\(port)", "a").first
    try daemon.done("hibernate", "web")
    #expect(try talk("\(port)", "b") == [pid ?? "?", "2", "b"])
  }

  @Test(
    "The next daemon gets the sockets back from a worker that still runs",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func recovered(setting: Setting) throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      """
      workers:
        web:
      \(Self.server)
          listen: [\(port), ./web.sock, "@dormouse-test-\(port)"]
          readiness: { log_line: up }
      """, setting: setting)
    try daemon.wait("web", toBe: "foreground")
    let pid = try talk("\(port)", "a").first
    try daemon.restartAfterCrash()
    #expect(try talk("\(port)", "b") == [pid ?? "?", "2", "b"])
    #expect(!daemon.logText.contains("can't listen"), "\(daemon.logText)")
    // The daemon holds them again: they stay open when the worker ends.
    try daemon.done("stop", "web")
    try daemon.done("start", "web")
    #expect(try talk("\(port)", "c").dropFirst() == ["1", "c"])
  }
}
