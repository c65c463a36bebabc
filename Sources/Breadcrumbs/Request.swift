import Glibc
import WorkerKit

/// A command from wherever, and where its answer goes.
struct Request: Sendable {
  var line: String
  var answer: @Sendable (String) -> Void
}

/// Commands from standard input, on a thread of its own: reading blocks.
///
/// - Parameter endsAll: the end of input is that of the program.
func readCommands(requests: AsyncStream<Request>.Continuation, endsAll: Bool) {
  startThread {
    while let line = readLine() {
      requests.yield(Request(line: line) { _ = Files.writeAll(Array($0.utf8), to: 1) })
    }
    if endsAll { requests.finish() }
  }
}

/// A thread for what blocks, which must not keep Swift's own few from working.
func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  let box = Unmanaged.passRetained(Box(body))
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { argument in
      if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
      return nil
    }, box.toOpaque())
  if code != 0 {
    box.release()
    quit(saying: "breadcrumbs: no thread to be had: \(String(cString: strerror(code)))", code: 71)
  }
  pthread_detach(thread)
}
