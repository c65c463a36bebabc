import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Descriptors that workers store with the daemon") struct StoreTests {
  /// Prints at start which descriptors it got. Each line that it reads from the FIFO is a Python
  /// statement.
  private static let program = """
    import array, os, socket, sys, time
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = os.environ["NOTIFY_SOCKET"]
    line.connect("\\0" + path[1:] if path[0] == "@" else path)
    def store(text, *fds):
      line.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    given = {}
    if "LISTEN_FDS" in os.environ:
      assert os.environ["LISTEN_PID"] == str(os.getpid())
      assert int(os.environ["LISTEN_FDS"]) == len(names)
      given = {name: 3 + n for n, name in enumerate(names)}
    print("given", ",".join(names) or "nothing", flush=True)
    if "state" in given: print("state", os.pread(given["state"], 100, 0).decode(), flush=True)
    if "client" in given:
      answer = b"from " + str(os.getpid()).encode()
      head = b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(answer)
      socket.socket(fileno=given["client"]).sendall(head + answer)
    line.send(b"READY=1")
    # Open for writing as well: without a writer in between the FIFO would be at its end, and \
    what is written while it
    # is being opened again would be lost.
    for order in os.fdopen(os.open(sys.argv[1], os.O_RDWR)): exec(order)
    """

  private struct Worker {
    let scratch: Scratch
    let daemon: TestDaemon
    private let orders: String

    init(_ keys: String) throws {
      scratch = try Scratch()
      orders = "\(scratch.path)/orders"
      guard mkfifo(orders, 0o600) == 0 else { throw TestFailure("mkfifo") }
      let script = try scratch.write("keeper.py", StoreTests.program)
      daemon = try TestDaemon(
        """
        policy_overrides: { background: { suspend_after: 1h } }
        workers:
          keeper:
            command: [\(TestMachine.python), \(script), \(orders)]
            readiness: { notify: true }
            restart: { when: on-failure, backoff: { initial: 50ms } }
            \(keys)
        """)
      try daemon.wait("keeper", toBe: "foreground")
    }

    func order(_ statement: String) throws {
      let file = try Descriptor.open(orders, O_WRONLY)
      try file.writeAll(statement + "\n")
    }

    func waitForLog(_ text: String) throws { try daemon.waitForWorkerLog("keeper", text) }
  }

  @Test("Stored descriptors are passed to a worker's next run, after its sockets, with their names")
  func kept() throws {
    let port = try freePort()
    let worker = try Worker("fdstore: 4\n    listen: { http: \(port) }")
    try worker.waitForLog("given http\n")
    try worker.order(
      "f = os.memfd_create('x'); os.write(f, b'counted to 3'); "
        + "store('FDSTORE=1\\nFDNAME=state', f); os.close(f)"
    )
    try worker.order(
      "s = socket.socket(fileno=3); c, _ = s.accept(); "
        + "store('FDSTORE=1\\nFDNAME=client', c.fileno()); os._exit(3)"
    )
    let client = try HTTPConnection(port: port)
    try worker.waitForLog("given http,state,client\nstate counted to 3\n")
    let pid = try #require(try worker.daemon.worker("keeper").pid)
    #expect(try client.receive() == "from \(pid)")
    // The verb `restart` passes them on as well.
    try worker.order("line.send(b'FDSTOREREMOVE=1\\nFDNAME=client\\nSTATUS=removed')")
    #expect(try eventually { try worker.daemon.worker("keeper").says == "removed" })
    try worker.daemon.done("restart", "keeper")
    try worker.waitForLog("given http,state\nstate counted to 3\n")
  }
}
