import Glibc
import Policy
import TestSupport
import Testing

@testable import Linux
@testable import Supervision

@Suite("Probes") struct ProbeRunnerTests {
  /// A server whose responses depend on the path.
  private static let server = """
    import http.server, time
    class Handler(http.server.BaseHTTPRequestHandler):
      def do_GET(self):
        if self.path == '/slow': time.sleep(30)
        code = 503 if self.path == '/sick' else 302 if self.path == '/away' else 200
        if self.path == '/header' and self.headers.get('X-Check') != 'yes': code = 400
        self.send_response(code)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
      def log_message(self, *_): pass
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    print('port', server.server_address[1], 'x', flush=True)
    server.serve_forever()
    """

  /// - Parameter isOver: true if the time for an answer is over. A busy machine needs any time.
  private func ask(
    _ action: Probe.Action, _ worker: TestWorker, timeout: Duration = .seconds(60),
    until isOver: () -> Bool = { false }
  ) throws -> ProbeRunner.Outcome {
    let runner = ProbeRunner(starting: Probe(action, timeout: timeout), of: worker.process)
    let deadline = Deadline(in: timeout)
    while case .awaiting(let interest) = runner.progress {
      let descriptor = try #require(runner.descriptor)
      let events = interest == .writable ? POLLOUT : POLLIN
      // What has come by then is received first.
      let isLate = deadline.hasPassed || isOver()
      if try pollDescriptor(descriptor.raw, for: events, until: Deadline(in: .milliseconds(10))) {
        runner.proceed()
      } else if isLate {
        runner.expire()
      }
    }
    guard case .ended(let outcome) = runner.progress else { throw CancellationError() }
    #expect(runner.descriptor == nil)
    return outcome
  }

  @Test("An HTTP status from 200 to 399 is success, and any other is a failure that names it")
  func http() throws {
    let worker = try TestWorker("python3", "-c", Self.server)
    try worker.waitForOutput("x")
    let port = try #require(UInt16(readText(worker.log).split(separator: " ")[1]))
    func get(_ path: String, _ headers: [Probe.HTTPRequest.Header] = []) throws
      -> ProbeRunner.Outcome
    {
      try ask(.http(.init(port: port, path: path, headers: headers)), worker)
    }
    #expect(try get("/") == .success)
    #expect(try get("/away") == .success)
    #expect(try get("/sick") == .failure("/sick: status 503"))
    #expect(try get("/header", [.init(name: "X-Check", value: "yes")]) == .success)
    #expect(try get("/header") == .failure("/header: status 400"))
    let slow = try ask(
      .http(.init(port: port, path: "/slow")), worker, timeout: .seconds(1))
    #expect(slow == .failure("no answer within 1 s"))
    #expect(try ask(.tcp(host: "localhost", port: port), worker) == .success)
  }

  @Test func `A command that can't start for lack of a resource is no failure of the worker`() {
    let request = SpawnRequest(
      path: "/bin/true", arguments: ["true"], environment: [:], directory: "/", input: 0,
      output: 1, error: 2)
    for code in [EAGAIN, ENOMEM, EMFILE] {
      #expect(LaunchError.spawn(SpawnError(step: .fork, code: code, request: request)).isShortage)
      #expect(LaunchError.log(SystemCallError("open", on: "/dev/null", code: code)).isShortage)
    }
    #expect(!LaunchError.spawn(SpawnError(step: .exec, code: EACCES, request: request)).isShortage)
    #expect(!LaunchError.noCommand.isShortage)
  }

  @Test func `A probe of a port without a listener, or of a host name, fails`() throws {
    let worker = try TestWorker("sleep", "60")
    #expect(
      try ask(.tcp(host: "127.0.0.1", port: 1), worker)
        == .failure("port 1: Connection refused"))
    let named = try ask(.tcp(host: "example.org", port: 80), worker)
    #expect(
      named == .failure("`example.org` is not a numeric address; write one, such as 127.0.0.1"))
  }

  @Test(
    "A command's exit code answers a probe, and a command that hangs is ended with its children")
  func exec() throws {
    let worker = try TestWorker("sleep", "60")
    #expect(try ask(.exec(["true"]), worker) == .success)
    #expect(
      try ask(.exec(["sh", "-c", "exit 3"]), worker) == .failure("its command exited with 3"))
    let file = "\(worker.scratch.path)/pid"
    var child: Int32?
    // The file isn't there before the command has written it.
    let hung = try ask(.exec(["sh", "-c", "sleep 70 & echo $! > \(file); wait"]), worker) {
      child = (try? readText(file))?.split(separator: "\n").first.flatMap { Int32($0) }
      return child != nil
    }
    #expect(hung == .failure("no answer within 60 s"))
    let pid = try #require(child)
    #expect(try eventually { (try? ProcessStat.read(pid))?.isEnded ?? true })
    guard case .failure(let reason) = try ask(.exec(["no-such-program"]), worker) else {
      Issue.record("it ran")
      return
    }
    #expect(reason.contains("not found in its PATH"))
  }
}
