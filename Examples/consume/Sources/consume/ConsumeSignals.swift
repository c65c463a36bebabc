#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Runs a blocking function on a new thread.
func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  let box = Unmanaged.passRetained(Box(body))
  #if canImport(Darwin)
    var thread: pthread_t?
    let start: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? = { argument in
      Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
      return nil
    }
  #else
    var thread = pthread_t()
    let start: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { argument in
      if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
      return nil
    }
  #endif
  if pthread_create(&thread, nil, start, box.toOpaque()) != 0 { box.release() }
}

/// The pipe to which the signal's handler writes: a handler may do little else.
private let warned: (read: Int32, write: Int32) = {
  var ends: (Int32, Int32) = (-1, -1)
  _ = withUnsafeMutableBytes(of: &ends) { pipe($0.assumingMemoryBound(to: Int32.self).baseAddress) }
  return (ends.0, ends.1)
}()

/// Returns each SIGUSR1 from now on. A daemon or `footprint record` sends it only to processes with
/// a handler for it, because it would end any other.
func warnings() -> AsyncStream<Void> {
  let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
  // The pipe is created here, before the handler uses it.
  let end = warned.read
  signal(SIGUSR1) { _ in
    var byte: UInt8 = 1
    _ = write(warned.write, &byte, 1)
  }
  startThread {
    var byte: UInt8 = 0
    while true {
      let count = read(end, &byte, 1)
      if count > 0 { continuation.yield() }
      if count == 0 || (count < 0 && errno != EINTR) { return }
    }
  }
  return stream
}

/// The lines of standard input, until its end.
func commands() -> AsyncStream<String> {
  let (stream, continuation) = AsyncStream.makeStream(of: String.self)
  startThread {
    while let line = readLine() { continuation.yield(line) }
    continuation.finish()
  }
  return stream
}

/// Writes a line to standard output at once: the reader of a pipe waits for it.
func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
