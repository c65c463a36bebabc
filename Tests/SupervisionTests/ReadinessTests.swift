import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite struct ReadinessTests {
  @Test func `A port is ready when a process listens on it`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      """
      import socket, time
      s = socket.socket()
      s.bind(('127.0.0.1', 0))
      print('port', s.getsockname()[1], 'x', flush=True)
      while not __import__('os').path.exists('go'): time.sleep(0.005)
      s.listen()
      time.sleep(60)
      """)
    try worker.waitForOutput("x")
    let port = try #require(UInt16(readText(worker.log).split(separator: " ")[1]))
    let readiness = Readiness(.tcp(port), worker: worker.process)
    for _ in 0..<20 { #expect(try !readiness.check()) }
    #expect(readiness.needsChecking)
    _ = try Descriptor.open("\(worker.scratch.path)/go", O_CREAT | O_WRONLY, mode: 0o600)
    #expect(try eventually { try readiness.check() })
    #expect(!readiness.needsChecking)
  }

  @Test func `A readiness probe hangs up when the worker reports that it is ready`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      """
      import socket, time
      s = socket.socket()
      s.bind(('127.0.0.1', 0))
      s.listen()
      print('port', s.getsockname()[1], 'x', flush=True)
      c, _ = s.accept()
      print('hung up' if c.recv(1) == b'' else 'talked', flush=True)
      time.sleep(60)
      """)
    try worker.waitForOutput("x")
    let port = try #require(UInt16(readText(worker.log).split(separator: " ")[1]))
    let readiness = Readiness(.tcp(port), worker: worker.process)
    // This begins to connect, and mostly isn't finished at the first check.
    _ = try readiness.check()
    readiness.didNotify()
    try worker.waitForOutput("hung up")
    #expect(readiness.isReady)
  }

  @Test func `A listener on IPv6 only is found too`() throws {
    let worker = try TestWorker(
      "python3", "-c",
      """
      import socket, time
      s = socket.socket(socket.AF_INET6)
      s.bind(('::1', 0))
      s.listen()
      print('port', s.getsockname()[1], 'x', flush=True)
      time.sleep(60)
      """)
    let up = try eventually {
      let text = try readText(worker.log)
      return text.contains("x") || text.contains("Error")
    }
    #expect(up)
    // Without IPv6 on this machine there is nothing to test.
    guard let port = UInt16(try readText(worker.log).split(separator: " ")[1]) else { return }
    // This probe is used again: a connection may need more than one check.
    let probe = TCPProbe(port: port)
    #expect(try eventually { probe.attempt() })
  }

  @Test func `A line in the log counts as readiness only if it was written after the launch`()
    throws
  {
    let worker = try TestWorker("sh", "-c", "printf 'server is rea'; sleep 0.05; echo 'dy now'")
    let readiness = Readiness(.logLine("is ready"), worker: worker.process)
    #expect(try eventually { try readiness.check() })

    let scratch = try Scratch()
    let path = "\(scratch.path)/log"
    let destination = LogDestination(path: path)
    let log = try WorkerLog.open(destination, limit: 1 << 20)
    try log.descriptor.writeAll("ready\n")
    let scanner = LogScan(destination, offset: 6, text: "ready")
    #expect(try !scanner.scan())
    // The text is split across two scans, with much output before it.
    try log.descriptor.writeAll(String(repeating: "reread", count: 100_000) + "rea")
    for _ in 0..<5 { #expect(try !scanner.scan()) }
    try log.descriptor.writeAll("dy")
    #expect(try scanner.scan())
  }

  /// Opening a FIFO for reading waits for a writer. A hostile worker never opens it for writing.
  @Test
  func `A FIFO or a device in the log's destination is an error, and reading doesn't wait for it`()
    throws
  {
    let scratch = try Scratch()
    let path = "\(scratch.path)/log"
    #expect(mkfifo(path, 0o600) == 0)
    let destination = LogDestination(path: path, isPathConfigured: true)
    let scans = [
      LogScan(destination, offset: 0, text: "ready"),
      LogScan(destination, offset: 0, pattern: "^ready$"),
      LogScan(LogDestination(path: "/dev/zero", isPathConfigured: true), offset: 0, text: "ready"),
    ]
    let results = try within(.seconds(60)) {
      scans.map { scan -> Int32? in
        do throws(SystemCallError) {
          _ = try scan.scan()
          return nil
        } catch { return error.code }
      }
    }
    #expect(results == [ESPIPE, ESPIPE, ESPIPE])
    let line = try within(.seconds(60)) {
      LastLogLines(destination: destination, logStart: 0).readLines(upTo: 1)?.last
    }
    #expect(line == nil)
  }

  @Test func `A pattern matches whole lines that were written since the last scan`() throws {
    let scratch = try Scratch()
    let destination = LogDestination(path: "\(scratch.path)/log")
    let log = try WorkerLog.open(destination, limit: .max)
    let scan = LogScan(destination, offset: 0, pattern: "^up [0-9]+$")
    try log.descriptor.writeAll("up x\nup 1")
    #expect(try !scan.scan())
    try log.descriptor.writeAll("2\n")
    #expect(try scan.scan())
  }

  @Test func `A notification makes a worker ready`() throws {
    let worker = try TestWorker("sleep", "60")
    let readiness = Readiness(.notify, worker: worker.process)
    #expect(try !readiness.check())
    #expect(!readiness.needsChecking)
    readiness.didNotify()
    #expect(try readiness.check())
  }
}
