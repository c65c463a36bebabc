import CLinux
import Glibc
import Linux

/// The daemon's end of a worker's `NOTIFY_SOCKET`: sd_notify(3)'s protocol. Belongs to the event
/// loop's thread.
public final class NotifySocket {
  /// The value of the worker's `NOTIFY_SOCKET`. It begins with `@` if the path would have been too long for a
  /// socket address, and an abstract name is used.
  public let path: String
  /// Readable when a datagram has come.
  public let descriptor: Descriptor
  /// Datagrams from processes that aren't the worker's, and ones that were too large.
  public private(set) var rejectedCount = 0

  /// Requests to store or remove descriptors, oldest first.
  private var storeRequests: [StoreRequest] = []
  private let takesDescriptors: Bool
  private let read: Read

  typealias Read =
    (Descriptor, UnsafeMutableRawBufferPointer) throws(SystemCallError) -> Reception?

  private var allowance: Int64 = NotifySocket.maxSaved
  private var refilledAt: Int64 = 0
  /// Datagrams that are read in a second, and at most at once. Finding out whether one comes from the worker
  /// needs a look into /proc.
  static let perSecond: Int64 = 200
  static let maxSaved: Int64 = 400

  /// False: too many have come. The caller looks again after a tenth of a second.
  public var mayReceive: Bool { allowance > 0 }

  /// Bytes; larger datagrams are rejected.
  static let maxDatagram = 65536

  /// A socket called `<directory>/<name>.notify`, or an abstract one with a random name.
  public static func create(
    in directory: String, name: String, takesDescriptors: Bool = false
  ) throws(SystemCallError) -> NotifySocket {
    let path = "\(directory)/\(CgroupRoot.sanitised(name)).notify"
    if path.utf8.count <= UnixSocket.maxPath {
      return try NotifySocket(path: path, takesDescriptors: takesDescriptors)
    }
    let random = String(UInt64.random(in: .min ... .max), radix: 16)
    return try NotifySocket(
      path: "@dormouse-\(random).notify", takesDescriptors: takesDescriptors)
  }

  /// At a path that a worker already knows, from an earlier daemon.
  ///
  /// - Parameter takesDescriptors: the worker may store some (`FDSTORE=1`).
  public convenience init(
    path: String, takesDescriptors: Bool = false
  ) throws(SystemCallError) {
    try self.init(path: path, takesDescriptors: takesDescriptors) {
      (socket, buffer) throws(SystemCallError) in
      try Reception.receive(from: socket, into: buffer)
    }
  }

  init(path: String, takesDescriptors: Bool = false, read: @escaping Read) throws(SystemCallError) {
    self.path = path
    self.takesDescriptors = takesDescriptors
    self.read = read
    descriptor = try UnixSocket.bound(to: path, .datagram)
    try shim("setsockopt", on: path) { clinux_pass_credentials(descriptor.raw) }
    // Senders of FDSTORE=1 are answered EPERM by the kernel.
    if !takesDescriptors { UnixSocket.refuseDescriptors(descriptor) }
  }

  /// Everything that has come, at most `limit` datagrams of it; what is left keeps the descriptor
  /// readable. An error is thrown only when nothing was read before it. `isMember` says whether a pid is one of the worker's.
  public func receive(
    limit: Int = 64, at now: Int64 = Clocks.boottime, isMember: (Int32) -> Bool
  ) throws(SystemCallError) -> [NotifyMessage] {
    refill(at: now)
    // For the length of the call only: a hundred workers' sockets must not cost 6 MB. One byte
    // more than may come, so that a datagram that was cut off shows.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.maxDatagram + 1, alignment: 16)
    defer { buffer.deallocate() }
    var messages: [NotifyMessage] = []
    for _ in 0..<min(Int64(limit), allowance) {
      let received: Reception?
      do throws(SystemCallError) { received = try read(descriptor, buffer) } catch {
        // What has been read is no longer in the socket. The error comes again with the next call.
        if messages.isEmpty { throw error }
        break
      }
      guard let datagram = received else { break }
      allowance -= 1
      // The kernel reports the sender. 0: a process of a pid namespace that the daemon can't see.
      guard datagram.count <= Self.maxDatagram, datagram.pid > 0, isMember(datagram.pid) else {
        rejectedCount += 1
        continue
      }
      messages += NotifyMessage.parse(buffer[..<datagram.count])
      // A descriptor that isn't kept is closed on another thread, here and above.
      if takesDescriptors,
        let request = StoreRequest(buffer[..<datagram.count], passed: datagram.passed)
      {
        storeRequests.append(request)
      }
    }
    return messages
  }

  /// Valid after `receive`.
  public func takeStoreRequests() -> [StoreRequest] {
    defer { storeRequests = [] }
    return storeRequests
  }

  /// - Parameter now: nanoseconds.
  private func refill(at now: Int64) {
    let earned = min(now - refilledAt, 10_000_000_000) * Self.perSecond / 1_000_000_000
    guard earned > 0 else { return }
    refilledAt = now
    allowance = min(Self.maxSaved, allowance + earned)
  }

  /// Removes the name; not done on release, since a later daemon may have bound it again.
  public func remove() {
    if !path.hasPrefix("@") { discardFile(path) }
  }
}
