import Glibc

/// Addresses of Unix sockets.
public enum UnixSocketAddress {
  /// The number of bytes of a path that fit into `sun_path`, without the NUL that must end it
  /// (unix(7)).
  public static let maximumPathLength = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  /// Throws `pathTooLong` if the path doesn't fit a socket address.
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
