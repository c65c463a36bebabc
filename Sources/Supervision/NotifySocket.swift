import CLinux
import Glibc
import Linux

/// The daemon's end of a worker's `NOTIFY_SOCKET`: sd_notify(3)'s protocol. Belongs to the event
/// loop's thread.
public final class NotifySocket {
  /// What the worker finds in `NOTIFY_SOCKET`. Begins with `@` where the path would have been too
  /// long for a socket address, and an abstract name is used.
  public let path: String
  /// Readable when something has come.
  public let descriptor: Descriptor
  /// Datagrams from processes that aren't the worker's, and ones that were too large.
  public private(set) var rejectedCount = 0

  /// Bytes; larger datagrams are rejected.
  static let longestDatagram = 65536

  /// A socket called `<directory>/<name>.notify`, or an abstract one with a random name.
  public static func create(
    in directory: String, name: String
  ) throws(SystemCallError) -> NotifySocket {
    let path = "\(directory)/\(CgroupRoot.sanitised(name)).notify"
    if path.utf8.count <= UnixSocket.longestPath { return try NotifySocket(path: path) }
    let random = String(UInt64.random(in: .min ... .max), radix: 16)
    return try NotifySocket(path: "@dormouse-\(random).notify")
  }

  /// At a path that a worker already knows, from an earlier daemon.
  public init(path: String) throws(SystemCallError) {
    self.path = path
    descriptor = try UnixSocket.bound(to: path, .datagram)
    try shim("setsockopt", on: path) { clinux_pass_credentials(descriptor.raw) }
  }

  /// Everything that has come, at most `limit` datagrams of it; what is left keeps the descriptor
  /// readable. `isMember` says whether a pid is one of the worker's.
  public func receive(
    limit: Int = 64, isMember: (Int32) -> Bool
  ) throws(SystemCallError) -> [NotifyMessage] {
    // For the length of the call only: a hundred workers' sockets must not cost 6 MB. One byte
    // more than may come, so that a datagram that was cut off shows.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.longestDatagram + 1, alignment: 16)
    defer { buffer.deallocate() }
    var messages: [NotifyMessage] = []
    for _ in 0..<limit {
      guard let (count, sender) = try receiveOne(into: buffer) else { break }
      // The kernel vouches for the sender. 0: from a pid namespace that we don't see into.
      guard count <= Self.longestDatagram, sender > 0, isMember(sender) else {
        rejectedCount += 1
        continue
      }
      messages += NotifyMessage.parse(buffer[..<count])
    }
    return messages
  }

  /// The length of a datagram and its sender's pid; nil when there is none.
  private func receiveOne(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemCallError) -> (count: Int, sender: Int32)? {
    var sender: pid_t = 0
    var user: uid_t = 0
    do throws(SystemCallError) {
      let count = try shim("recvmsg", on: path) {
        clinux_receive_with_credentials(
          descriptor.raw, buffer.baseAddress, Int64(buffer.count), &sender, &user)
      }
      return (Int(count), sender)
    } catch {
      if error.code == EAGAIN { return nil }
      throw error
    }
  }

  /// Takes the name away; not done on release, since a later daemon may have bound it again.
  public func remove() {
    if !path.hasPrefix("@") { unlink(path) }
  }
}
