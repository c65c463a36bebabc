import Glibc
import WorkerKit

/// An object cache of many megabytes. Commands are lines of standard input: `fill N` makes N
/// objects on all cores, `footprint` prints the footprint, `quit` ends it. A memory warning, of the
/// daemon or by SIGUSR1, empties it.
enum Hoard {
  static func main() -> Never {
    // `footprint record --warn-at` sends SIGUSR1 only to a process that has a handler for it.
    signal(SIGUSR1) { _ in }
    var warning = sigset_t()
    sigemptyset(&warning)
    sigaddset(&warning, SIGUSR1)
    // The signal is blocked before there is another thread, which would receive it.
    pthread_sigmask(SIG_BLOCK, &warning, nil)
    let objects = MemoryCache<UInt64, [UInt64]>(name: "objects", costLimit: 0)
    Worker.shared.connect()
    Task.detached {
      for await line in commands() { await perform(line, objects) }
      exit(0)
    }
    var received: Int32 = 0
    while true {
      guard sigwait(&warning, &received) == 0 else { continue }
      Task.detached { _ = await Worker.shared.simulateMemoryWarning() }
    }
  }

  private static func perform(_ line: String, _ objects: MemoryCache<UInt64, [UInt64]>) async {
    let words = line.split(separator: " ")
    switch words.first {
    case "fill":
      // The objects are made on all cores: each thread has a heap of its own.
      await withDiscardingTaskGroup { group in
        for _ in 0..<(words.dropFirst().first.flatMap { Int($0) } ?? 0) {
          group.addTask {
            let key = UInt64.random(in: 1 ... .max)
            objects.insert([UInt64](repeating: key, count: 1 << 17), for: key, cost: 1 << 20)
          }
        }
      }
    case "footprint":
      let text = Array("footprint \(Footprint.current().total)\n".utf8)
      _ = write(STDOUT_FILENO, text, text.count)
    default: exit(0)
    }
  }

  private static func commands() -> AsyncStream<String> {
    let (stream, continuation) = AsyncStream.makeStream(of: String.self)
    startThread {
      while let line = readLine() { continuation.yield(line) }
      continuation.finish()
    }
    return stream
  }
}
