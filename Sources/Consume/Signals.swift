#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A thread of its own for what blocks: reading, and waiting for signals.
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

/// Each SIGUSR1 from here on. To be called while there is one thread alone: it and those that come
/// after have the signal blocked, so that it waits for the one that asks for it.
func warnings() -> AsyncStream<Void> {
  // The signal is sent only to who has a handler for it, since it would end anybody else. This one is
  // never called.
  signal(SIGUSR1) { _ in }
  var set = sigset_t()
  sigemptyset(&set)
  sigaddset(&set, SIGUSR1)
  pthread_sigmask(SIG_BLOCK, &set, nil)
  let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
  startThread {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGUSR1)
    var number: Int32 = 0
    while sigwait(&set, &number) == 0 { continuation.yield() }
  }
  return stream
}

/// Lines of standard input, to its end.
func commands() -> AsyncStream<String> {
  let (stream, continuation) = AsyncStream.makeStream(of: String.self)
  startThread {
    while let line = readLine() { continuation.yield(line) }
    continuation.finish()
  }
  return stream
}

/// A line on standard output, at once: who reads it through a pipe is waiting.
func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
