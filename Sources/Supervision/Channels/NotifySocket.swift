import CLinux
import Linux

/// The daemon's end of a worker's `NOTIFY_SOCKET`, for the protocol of sd_notify(3). It belongs to
/// the event loop's thread.
public final class NotifySocket {
  /// The value of the worker's `NOTIFY_SOCKET`. If the path is too long for a socket address, an
  /// abstract name is used instead, which begins with `@`.
  public let path: String
  /// Readable when a datagram has arrived.
  public let descriptor: Descriptor

  /// Requests to store or remove descriptors, oldest first.
  private var storeRequests: [StoreRequest] = []
  private let acceptsDescriptors: Bool
  private let read: Read

  package typealias Read =
    (Descriptor, UnsafeMutableRawBufferPointer) throws(SystemCallError) -> Reception?

  /// The datagrams that may still be read: 200 per second, and at most 400 at once. To check
  /// whether a datagram comes from the worker, the daemon has to read /proc.
  private let allowance = Allowance(perSecond: 200, maxSaved: 400, interval: 5_000_000)

  /// False if too many datagrams have arrived. The caller tries again after 0.1 s.
  public var mayReceive: Bool { allowance.isLeft }

  /// In bytes. Larger datagrams are rejected.
  static let maxDatagram = 65536

  /// Creates a socket at `<directory>/<name>.notify`, or one with a random abstract name.
  public static func create(
    in directory: String, name: String, acceptsDescriptors: Bool = false
  ) throws(SystemCallError) -> NotifySocket {
    let path = "\(directory)/\(CgroupRoot.sanitised(name)).notify"
    if path.utf8.count <= UnixSocket.maxPath {
      return try NotifySocket(path: path, acceptsDescriptors: acceptsDescriptors)
    }
    let random = String(UInt64.random(in: .min ... .max), radix: 16)
    return try NotifySocket(
      path: "@dormouse-\(random).notify", acceptsDescriptors: acceptsDescriptors)
  }

  /// Creates a socket at a path that a worker may know already, from an earlier daemon.
  ///
  /// - Parameter acceptsDescriptors: whether the worker may store descriptors (`FDSTORE=1`).
  package init(
    path: String, acceptsDescriptors: Bool = false,
    read: @escaping Read = Reception.receive(from:into:)
  ) throws(SystemCallError) {
    self.path = path
    self.acceptsDescriptors = acceptsDescriptors
    self.read = read
    descriptor = try UnixSocket.bound(to: path, .datagram)
    try shim("setsockopt", on: path) { clinux_pass_credentials(descriptor.raw) }
  }

  /// Reads the datagrams that have arrived, at most `limit`; the descriptor stays readable if there
  /// are more. An error is thrown only if nothing was read before it.
  ///
  /// - Parameter isMember: whether a pid is one of the worker's processes.
  public func receive(
    limit: Int = 64, at now: Int64 = Clocks.boottime, isMember: (Int32) -> Bool
  ) throws(SystemCallError) -> [NotifyMessage] {
    allowance.refill(at: now)
    // The buffer exists only during the call: those of a hundred workers' sockets would need 6 MB.
    // It has one byte more than a datagram may have, so that a truncated datagram is recognized.
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.maxDatagram + 1, alignment: 16)
    defer { buffer.deallocate() }
    var messages: [NotifyMessage] = []
    for _ in 0..<min(Int64(limit), allowance.left) {
      let received: Reception?
      do throws(SystemCallError) { received = try read(descriptor, buffer) } catch {
        // The datagrams that were read are no longer in the socket. The error occurs again at the
        // next call.
        if messages.isEmpty { throw error }
        break
      }
      guard let datagram = received else { break }
      allowance.use(1)
      // The kernel reports the sender. Its pid is 0 if it is in a pid namespace that the daemon
      // can't see.
      guard datagram.count <= Self.maxDatagram, datagram.pid > 0, isMember(datagram.pid)
      else { continue }
      messages += NotifyMessage.parse(buffer[..<datagram.count])
      // Descriptors that aren't stored are closed on another thread; so are those of a rejected
      // datagram. The sender of BARRIER=1 (sd_notify_barrier(3)) waits for that.
      if acceptsDescriptors,
        let request = StoreRequest(buffer[..<datagram.count], passed: datagram.passed)
      {
        storeRequests.append(request)
      }
    }
    return messages
  }

  /// Returns and removes the requests that `receive` has read.
  public func drainStoreRequests() -> [StoreRequest] {
    defer { storeRequests = [] }
    return storeRequests
  }

  /// Removes the socket's file. `deinit` doesn't: a later daemon may have bound the path again.
  public func remove() {
    if !path.hasPrefix("@") { discardFile(path) }
  }
}
