import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

/// Inputs that are neither sockets nor pipes: changes to files, FIFOs that are opened, terminals,
/// message queues.
@Suite struct FileWakeTests {
  /// Watches a directory by inotify and writes the name of each changed file.
  static let watcher = """
    import ctypes, struct
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(0)
    os.mkdir('watched')
    libc.inotify_add_watch(watch, b'watched', 0x108)  # IN_CREATE | IN_CLOSE_WRITE
    print('ready', flush=True)
    while True:
        events = os.read(watch, 4096)
        name = events[16:16 + struct.unpack_from('I', events, 12)[0]].rstrip(b'\\0')
        print('saw', name.decode(), flush=True)
    """

  @Test func `A change to a watched file wakes the sleeping worker, which then sees it`() throws {
    let worker = try Sleeper(Self.watcher)
    let sources = try worker.sleepQuietly()
    _ = try Descriptor.open(
      "\(worker.scratch.path)/watched/edited", O_CREAT | O_WRONLY, mode: 0o600)
    #expect(try sources.next() == "a change to a file that it watches")
    try worker.resume()
    #expect(try eventually { worker.log.contains("saw edited") })
  }

  @Test func `A change to a watched file just before the worker sleeps wakes it at once`() throws {
    let worker = try Sleeper(Self.watcher)
    try worker.stop()
    _ = try Descriptor.open(
      "\(worker.scratch.path)/watched/edited", O_CREAT | O_WRONLY, mode: 0o600)
    #expect(try worker.sleep().waiting == "a change to a file that it watches")
  }

  /// Opens the FIFO `pipe` again and again and records what it reads.
  static let reader = """
    os.mkfifo('pipe')
    print('ready', flush=True)
    while True:
        with open('pipe') as pipe: print('got', pipe.read(), flush=True)
    """

  @Test func `A worker that waits to open a FIFO is woken when a writer opens it`() throws {
    let worker = try Sleeper(Self.reader)
    #expect(try eventually { worker.isInCall(SYS.openat) })
    let sources = try worker.sleepQuietly()
    // Without the daemon's end this open would fail (ENXIO), and a blocking open(2) would never
    // return.
    let path = "\(worker.scratch.path)/pipe"
    let writer = try Descriptor.open(path, O_WRONLY | O_NONBLOCK)
    #expect(try sources.next() == "the opening of the other end of pipe")
    sources.handOverOpened()
    try worker.resume()
    try writer.writeAll("hello")
    withExtendedLifetime(writer) {}
  }

  @Test(arguments: [("clr-debug-pipe-17-4711-in", false), ("pipe", true)])
  func `The debuggers' FIFO of a .NET runtime doesn't make a worker one with clients`(
    name: String, hasClients: Bool
  ) throws {
    let worker = try Sleeper(
      """
      os.dup2(os.open('/dev/null', os.O_RDWR), 0)
      path = os.getcwd() + '/\(name)'
      os.mkfifo(path)
      print('ready', flush=True)
      open(path)
      """)
    #expect(try eventually { worker.isInCall(SYS.openat) })
    let sources = try worker.sleepQuietly()
    #expect(sources.count == 1 && sources.hasClients == hasClients)
  }

  @Test
  func
    `A worker reads what a writer left in a FIFO that it opened and closed while the worker slept`()
    throws
  {
    let worker = try Sleeper(Self.reader)
    for word in ["first", "second"] {
      #expect(try eventually { worker.isInCall(SYS.openat) })
      var sources: WakeSources? = try worker.sleep()
      #expect(sources?.waiting == nil)
      try Descriptor.open("\(worker.scratch.path)/pipe", O_WRONLY | O_NONBLOCK).writeAll(word)
      #expect(try sources?.next() == "the opening of the other end of pipe")
      sources?.keepOpened()
      try worker.resume()
      #expect(try eventually { worker.isInCall(SYS.read) })
      sources?.handOverOpened()
      sources = nil
      #expect(try eventually { worker.log.contains("got \(word)\n") }, "\(worker.log)")
    }
    #expect(try eventually { worker.isInCall(SYS.openat) })
    #expect(worker.log.split(separator: "\n").filter { $0.hasPrefix("got") }.count == 2)
  }

  @Test func `A worker that sleeps while a writer already waits for its FIFO is woken at once`()
    throws
  {
    let worker = try Sleeper(Self.reader)
    #expect(try eventually { worker.isInCall(SYS.openat) })
    try worker.stop()
    let path = "\(worker.scratch.path)/pipe"
    let writer = try Sleeper(
      "print('ready', flush=True)\nwith open('\(path)', 'w') as pipe: pipe.write('early')")
    #expect(try eventually { writer.isInCall(SYS.openat) })
    let sources = try worker.sleep()
    #expect(sources.waiting == "the opening of the other end of pipe")
    sources.handOverOpened()
    try worker.resume()
    #expect(try eventually { worker.log.contains("got early\n") }, "\(worker.log)")
  }

  @Test func `A worker that is woken for another reason continues to wait for its FIFO's writer`()
    throws
  {
    let worker = try Sleeper(Self.reader)
    #expect(try eventually { worker.isInCall(SYS.openat) })
    var sources: WakeSources? = try worker.sleep()
    sources?.handOverOpened()
    withExtendedLifetime(sources) {}
    sources = nil
    try worker.resume()
    #expect(try eventually { worker.isInCall(SYS.openat) })
    #expect(!worker.log.contains("got"))
  }

  @Test func `A worker that waits to write to a FIFO is woken when a reader opens it`() throws {
    let worker = try Sleeper(
      """
      os.mkfifo('pipe')
      print('ready', flush=True)
      with open('pipe', 'w') as pipe: pipe.write('news')
      """)
    #expect(try eventually { worker.isInCall(SYS.openat) })
    let sources = try worker.sleepQuietly()
    let reader = try Descriptor.open("\(worker.scratch.path)/pipe", O_RDONLY | O_NONBLOCK)
    #expect(try sources.next() == "the opening of the other end of pipe")
    sources.handOverOpened()
    try worker.resume()
    #expect(try pollDescriptor(reader.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    #expect(try reader.read(upTo: 64) == Array("news".utf8))
  }

  @Test func `Input on its terminal wakes a worker, which reads it when it runs`() throws {
    let master = try Terminal()
    let worker = try Sleeper(
      """

      terminal = open('\(master.path)')
      print('ready', flush=True)
      while True: print('typed', terminal.readline(), flush=True)
      """)
    let sources = try worker.sleepQuietly()
    try master.descriptor.writeAll("key\n")
    #expect(try sources.next() == "input on its terminal")
    try worker.resume()
    #expect(try eventually { worker.log.contains("typed key") }, "\(worker.log)")
  }

  @Test(arguments: [true, false])
  func `Input on a terminal wakes no worker of another job, also if it has opened /dev/tty`(
    isForeground: Bool
  ) throws {
    let master = try Terminal()
    let worker = try Sleeper(
      """
      os.close(0)
      terminal = open('\(master.path)')
      control = open('/dev/tty')
      print('ready', flush=True)
      time.sleep(60)
      """)
    try worker.stop()
    var tree = try worker.tree()
    // As if another job had the terminal.
    if !isForeground { tree.processes[0].terminalGroup = 1 }
    let sources = try WakeSources(of: tree, daemonSockets: [])
    #expect(sources.count == (isForeground ? 2 : 0))
  }

  @Test func `A worker that has opened a device several times is woken by input at each opening`()
    throws
  {
    let worker = try Sleeper(
      """
      import pty
      pairs = [pty.openpty() for _ in range(3)]
      print('ready', *[os.ttyname(terminal) for _, terminal in pairs], flush=True)
      time.sleep(60)
      """)
    let paths = worker.log.split { $0 == " " || $0 == "\n" }.filter { $0.hasPrefix("/dev/pts/") }
    #expect(paths.count == 3)
    let sources = try worker.sleepQuietly()
    for path in paths {
      try Descriptor.open(String(path), O_WRONLY | O_NOCTTY).writeAll("output")
      #expect(try sources.next() != nil, "\(path)")
    }
  }

  /// Has a completion of io_uring that it doesn't read.
  private static let ringOwner = """
    import ctypes, struct
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)
    ring = libc.syscall(425, 4, parameters)  # io_uring_setup
    if ring < 0:
        print('ready none', flush=True)
        time.sleep(60)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    rings = libc.mmap(None, 4096, 3, 1, ring, 0)
    # All entries are zero, and so IORING_OP_NOP. The first one is submitted.
    tail = struct.unpack_from('I', parameters, 44)[0]
    ctypes.c_uint.from_address(rings + tail).value = 1
    libc.syscall(426, ring, 1, 0, 0, None, 0)  # io_uring_enter
    print('ready', flush=True)
    time.sleep(60)
    """

  @Test func `A completion of io_uring that a worker hasn't read wakes it, and only once`() throws {
    let worker = try Sleeper(Self.ringOwner)
    if worker.log.contains("none") { return notTestedHere("io_uring is disabled here") }
    #expect(try worker.sleep().waiting == "a completed request of io_uring")
    try worker.resume()
    _ = try worker.sleepQuietly()
  }

  @Test func `A wait that can't be watched is reported by name`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/lock"
    let held = try Descriptor.open(path, O_CREAT | O_RDWR, mode: 0o600)
    #expect(flock(held.raw, LOCK_EX) == 0)
    let worker = try Sleeper(
      """
      import fcntl
      print('ready', flush=True)
      fcntl.flock(open('\(path)'), fcntl.LOCK_EX)
      """)
    #expect(try eventually { worker.isInCall(SYS.flock) })
    let sources = try worker.sleep()
    #expect(sources.unwatched == ["the release of a file lock"])
    #expect(sources.refusals.isEmpty)
  }

  @Test func `A worker that waits only for its own threads has no unwatched wait`() throws {
    let worker = try Sleeper(
      """
      thread = threading.Thread(target=time.sleep, args=[60])
      thread.start()
      print('ready', flush=True)
      thread.join()
      """)
    #expect(try worker.sleep().unwatched == [])
  }
}

/// The system call numbers of x86-64 and arm64.
private enum SYS {
  #if arch(x86_64)
    static let (openat, flock, read) = (257, 73, 0)
  #else
    static let (openat, flock, read) = (56, 32, 63)
  #endif
}

extension Sleeper {
  /// Whether its first thread waits in this system call.
  fileprivate func isInCall(_ number: Int) -> Bool {
    let pid = process.pid
    return (try? readText("/proc/\(pid)/task/\(pid)/syscall"))?.hasPrefix("\(number) ") == true
  }
}

/// The master of a new pseudoterminal.
private struct Terminal {
  let descriptor: Descriptor
  let path: String

  init() throws {
    descriptor = try Descriptor.open("/dev/ptmx", O_RDWR | O_NOCTTY)
    var (locked, number) = (Int32(0), Int32(0))
    // TIOCSPTLCK and TIOCGPTN: what unlockpt(3) and ptsname(3) do, which Swift doesn't see.
    guard ioctl(descriptor.raw, 0x4004_5431, &locked) == 0,
      ioctl(descriptor.raw, 0x8004_5430, &number) == 0
    else { throw TestFailure("no pseudoterminal") }
    path = "/dev/pts/\(number)"
  }
}
