import Glibc

/// Owns a file descriptor; closes it at the end of its life.
struct OwnedDescriptor: ~Copyable {
  let number: Int32

  init(_ number: Int32) { self.number = number }
  deinit { close(number) }
}

/// Addresses of Unix sockets.
public enum UnixSocketAddress {
  /// Bytes of a path that fit into `sun_path`, beside the NUL that must end it (unix(7)).
  public static let maximumPathLength = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  public static func check(path: String) throws(ControlError) {
    guard path.utf8.count <= maximumPathLength else {
      throw .pathTooLong(path: path, maximum: maximumPathLength)
    }
  }

  /// Calls `body` with the address of `path`, for `bind` and `connect`.
  public static func with<Result>(
    path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) throws(ControlError) -> Result {
    try check(path: path)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}

/// Repeats the call while a signal interrupts it: the result, and the error's number (0 where there is
/// none), taken before anything else can change `errno`. The funnel of those targets that don't link
/// `Linux`, where the other one is.
func retryingOnInterrupt(_ call: () -> Int) -> (result: Int, code: Int32) {
  while true {
    let answer = kernelAnswer(call)
    if answer.code != EINTR { return answer }
  }
}

/// The same without repeating.
func kernelAnswer(_ call: () -> Int) -> (result: Int, code: Int32) {
  let result = call()
  return (result, result < 0 ? errno : 0)
}

/// open(2) for reading. The path is a C string before the call, and until after `errno` was taken.
func openForReading(_ path: String) -> (result: Int, code: Int32) {
  path.withCString { text in retryingOnInterrupt { Int(open(text, O_RDONLY | O_CLOEXEC)) } }
}
