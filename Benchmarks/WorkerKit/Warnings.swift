import Glibc
import WorkerKit

/// From a memory warning's line to its answer, over a real socket.
enum WarningBenchmark {
  private final class Delegate: WorkerDelegate {}

  static func run(rounds: Int, into table: inout Table) async throws {
    let daemon = try Daemon()
    let worker = Worker(socketPath: daemon.path)
    worker.connect(delegate: Delegate())
    let connection = try daemon.accept()
    let cache = MemoryCache<Int, [UInt8]>(worker: worker)
    for round in 0..<rounds * 10 {
      table.add("warning to answer, nothing to free", connection.warn(), "µs")
      guard round % 10 == 0 else { continue }
      for key in 0..<16_384 { cache[key] = [UInt8](repeating: 1, count: 1000) }
      table.add(
        "warning to answer, a cache of 16,384 values of 1,000 bytes", connection.warn(), "µs")
      for key in 0..<64 { cache[key] = [UInt8](repeating: 1, count: 256 << 10) }
      table.add("warning to answer, a cache of 64 values of 256 KiB", connection.warn(), "µs")
    }
    withExtendedLifetime((worker, cache)) {}
  }

  struct Failure: Error { var call: String }

  private final class Daemon {
    let path = "/tmp/dormouse-benchmark-\(getpid()).sock"
    private let listener: Int32

    init() throws {
      listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let size = socklen_t(MemoryLayout<sockaddr_un>.size)
      let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
      }
      guard result == 0, listen(listener, 1) == 0 else { throw Failure(call: "bind") }
    }

    deinit {
      unlink(path)
      close(listener)
    }

    func accept() throws -> Connection {
      let socket = Glibc.accept(listener, nil, nil)
      guard socket >= 0 else { throw Failure(call: "accept") }
      return Connection(socket)
    }
  }

  private final class Connection {
    private let socket: Int32
    private var id = 0
    init(_ socket: Int32) { self.socket = socket }
    deinit { close(socket) }

    /// Microseconds.
    func warn() -> Double {
      id += 1
      let line =
        #"{"type":"memoryWarning","id":\#(id),"deadlineSeconds":5,"level":"warning","#
        + #""footprintBytes":1}"# + "\n"
      let answer = Array("{\"type\":\"done\",\"id\":\(id)}\n".utf8)
      return nanoseconds {
        let text = Array(line.utf8)
        _ = send(socket, text, text.count, 0)
        var heard: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while !heard.suffix(answer.count).elementsEqual(answer) {
          let count = recv(socket, &buffer, buffer.count, 0)
          guard count > 0 else { return }
          heard += buffer[..<count]
        }
      } / 1000
    }
  }
}
