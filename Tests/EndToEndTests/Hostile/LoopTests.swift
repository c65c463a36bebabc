import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("A responsive event loop") struct LoopTests {
  /// Sends `ps` requests while `goesOn` is true; the answers' times, shortest first.
  private func ask(
    _ daemon: TestDaemon, times: Int, pause: Duration = .milliseconds(20),
    while goesOn: () throws -> Bool = { true }
  ) throws -> [Duration] {
    var taken: [Duration] = []
    while taken.count < times, try goesOn() {
      let start = ContinuousClock.now
      _ = try daemon.ask(.ps)
      taken.append(ContinuousClock.now - start)
      usleep(UInt32(pause / .microseconds(1)))
    }
    taken.sort()
    if let last = taken.last {
      let p99 = taken[min(taken.count - 1, taken.count * 99 / 100)]
      print("ps: \(taken.count) answers, p50 \(taken[taken.count / 2]), p99 \(p99), max \(last)")
    }
    return taken
  }

  /// The median of sorted answers. A single slow answer may be due to the machine, which runs
  /// hundreds of tests.
  private func median(_ sorted: [Duration]) throws -> Duration {
    try #require(sorted.dropFirst(sorted.count / 2).first)
  }

  /// Far below the times of a daemon whose loop waits, and far above what a busy machine adds to a
  /// median.
  private static let bound = Duration.seconds(1)

  @Test("The daemon answers `ps` while a worker's processes have 400,000 changing mappings")
  func manyMappings() throws {
    let scratch = try Scratch()
    let program = "\(scratch.path)/manymappings"
    let compiler = try Command(
      arguments: ["cc", "-O1", "-o", program, TestMachine.fixture("manymappings.c")]
    ).run(in: scratch)
    guard compiler.code == 0 else { throw TestFailure("cc: \(compiler)") }
    let daemon = try TestDaemon(
      "workers: { many: { command: [\(program), \"20000\", \"20\"] } }", setting: .traced)
    try daemon.wait("many", toBe: "foreground")
    try daemon.waitForWorkerLog("many", "ready")
    let taken = try ask(daemon, times: 100)
    #expect(try median(taken) < Self.bound)
    #expect(try !daemon.hasEnded(), "\(daemon.logText)")
    // Frees the machine from its load. The time that the kernel takes to end it doesn't matter.
    _ = try daemon.verb("terminate", "many")
  }

  @Test("The daemon wakes a worker and answers `ps` while another worker is being hibernated")
  func wakesBeside() throws {
    let script = """
      import os, time
      block = os.urandom(240 << 20)
      print('ready', flush=True)
      while True: time.sleep(1000)
      """
    let scratch = try Scratch()
    let path = try scratch.write("big.py", script)
    let daemon = try TestDaemon(
      """
      policy_overrides:
        foreground: { mode: manual }
        background: { suspend_after: 1h }
        hibernate: { enabled: true, after: never, max_footprint: 2GB, overlay: false }
      workers:
        big: { command: [\(TestMachine.python), \(path)], readiness: { log_line: ready } }
        small: { command: [\(TestMachine.python), -c, "import time; time.sleep(1000)"] }
      """, setting: .traced)
    for name in ["big", "small"] { try daemon.waitUntilRuns(name) }
    try daemon.done("hibernate", "small")
    try daemon.done("suspend", "big")

    var wakes = 0
    var taken: [Duration] = []
    // A machine that holds this test up may have written the big one before the small one is asked
    // to wake.
    for attempt in 0..<20 where wakes == 0 {
      if attempt > 0 {
        try daemon.done("wake", "big")
        try daemon.done("suspend", "big")
      }
      let hibernating = try UnixSocket.connected(to: daemon.socket, .stream)
      try hibernating.writeAll("{\"id\":1,\"verb\":\"hibernate\",\"worker\":\"big\"}\n")
      #expect(try eventually { try daemon.worker("big").state.hasPrefix("hibernat") })
      taken += try ask(daemon, times: 1000, pause: .zero) {
        guard try daemon.worker("big").state == "hibernating" else { return false }
        try daemon.done("wake", "small")
        guard try daemon.worker("big").state == "hibernating" else { return false }
        wakes += 1
        try daemon.done("suspend", "small")
        return true
      }
      try daemon.wait("big", toBe: "hibernated")
    }
    // The small one was woken while the big one was still being written: the loop didn't wait for
    // the write.
    #expect(wakes > 0, "the small one was woken only when the big one was on disk")
    #expect(try median(taken.sorted()) < Self.bound)
  }

  @Test("A worker that sends a descriptor whose close waits doesn't make the daemon wait")
  func lingering() throws {
    let script = """
      import array, os, socket, struct, time
      listener = socket.socket()
      listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
      listener.bind(('127.0.0.1', 0)); listener.listen(1)
      client = socket.socket(); client.connect(listener.getsockname())
      other, _ = listener.accept()
      client.setblocking(False)
      try:
        while True: client.send(b'x' * 65536)
      except BlockingIOError: pass
      client.setblocking(True)
      client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 20))
      rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [client.fileno()]))]
      for name in ('DORMOUSE_WORKER_SOCKET', 'MEMORY_PRESSURE_WATCH'):
        way = socket.socket(socket.AF_UNIX); way.connect(os.environ[name])
        # EPERM where the kernel refuses descriptors itself.
        try: way.sendmsg([b'{"type":"ready"}\\n'], rights)
        except PermissionError: pass
      name = os.environ['NOTIFY_SOCKET']
      way = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      try: way.sendmsg([b'STATUS=sent'], rights, 0, '\\0' + name[1:] if name[0] == '@' else name)
      except PermissionError: pass
      client.close()
      print('sent', flush=True)
      time.sleep(1000)
      """
    let scratch = try Scratch()
    let path = try scratch.write("linger.py", script)
    let daemon = try TestDaemon(
      "workers: { rude: { command: [\(TestMachine.python), \(path)], fdstore: 1 } }",
      setting: .traced)
    try daemon.wait("rude", toBe: "foreground")
    let taken = try ask(daemon, times: 1000) { !daemon.workerLog("rude").contains("sent") }
    let after = try ask(daemon, times: 50)
    // A close that waits takes the 20 s that the worker asked for.
    #expect((taken + after).allSatisfy { $0 < .seconds(15) })
    #expect(try !daemon.hasEnded(), "\(daemon.logText)")
  }

  @Test func `A worker without a cgroup whose processes fork all the time can be ended`() throws {
    let script = """
      import os, time
      # It ends by itself, even if the daemon fails. Its first process stays: the worker has \
      ended when that has.
      end = time.time() + 20
      if os.fork():
        while time.time() < end:
          time.sleep(0.05)
          try: os.waitpid(-1, os.WNOHANG)
          except ChildProcessError: pass
        os._exit(0)
      for _ in range(4): os.fork()
      while time.time() < end:
        if os.fork() == 0:
          pass
        else:
          try: os.waitpid(-1, os.WNOHANG)
          except ChildProcessError: pass
          time.sleep(0.05)
          os._exit(0)
      """
    let scratch = try Scratch()
    let path = try scratch.write("forks.py", script)
    let daemon = try TestDaemon(
      "workers: { forks: { command: [\(TestMachine.python), \(path)] } }", setting: .traced)
    try daemon.wait("forks", toBe: "foreground")
    let group = try #require(try daemon.worker("forks").pid)
    defer { Self.end(group: group) }
    // It forks for a while: how many there are by then doesn't matter.
    usleep(300_000)
    let socket = try UnixSocket.connected(to: daemon.socket, .stream)
    try socket.writeAll("{\"id\":1,\"verb\":\"terminate\",\"worker\":\"forks\"}\n")
    let taken = try ask(daemon, times: 400) { try daemon.worker("forks").state != "terminated" }
    if !taken.isEmpty { #expect(try median(taken) < Self.bound) }
    try daemon.wait("forks", toBe: "terminated")
  }

  /// Needed even if the daemon failed: thousands of processes, or of zombies that this process has
  /// inherited as a subreaper, would slow every other test's reads of /proc.
  private static func end(group: Int32) {
    let deadline = Deadline(in: .seconds(60))
    while kill(-group, SIGKILL) == 0, !deadline.hasPassed {
      while waitpid(-group, nil, WNOHANG) > 0 {}
      usleep(5000)
    }
  }
}
