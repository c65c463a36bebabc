import CLinux
import Glibc

/// Tells of descriptors whether anything has happened at them since they were armed, even if
/// somebody else has long since taken it.
///
/// That is what epoll can't: asked about a listening socket, it looks again, and finds the
/// connection accepted. The poll of Linux's native AIO is answered inside the wake-up itself and
/// keeps the answer, so nobody's thread needs to run until somebody asks.
///
/// Belongs to one thread.
public final class InputLatches {
  private let context: UInt64
  private var latches: [UInt64: Latch] = [:]
  private var counter: UInt64 = 0

  /// One descriptor's. The kernel holds on to that descriptor (and nothing else) until it fires or
  /// is removed.
  public final class Latch {
    fileprivate let token: UInt64
    fileprivate let request: UnsafeMutableRawPointer
    public fileprivate(set) var isArmed = false
    /// It has fired since the last `arm`.
    public fileprivate(set) var hasFired = false

    fileprivate init(token: UInt64) {
      self.token = token
      request = .allocate(byteCount: Int(clinux_aio_request_size()), alignment: 16)
    }

    deinit { request.deallocate() }
  }

  /// `capacity`: how many can be armed at a time.
  public init(capacity: Int32) throws(SystemCallError) {
    var error: Int32 = 0
    context = clinux_aio_setup(capacity, &error)
    if error != 0 { throw SystemCallError("io_setup", on: "\(capacity) polls", code: error) }
  }

  deinit { _ = clinux_aio_destroy(context) }

  public func add() -> Latch {
    counter += 1
    let latch = Latch(token: counter)
    latches[counter] = latch
    return latch
  }

  /// From now on. What can be read already makes it fire at once.
  public func arm(_ latch: Latch, at descriptor: Descriptor) throws(SystemCallError) {
    try shim("io_submit", on: "a poll") {
      clinux_aio_poll(
        context, latch.request, descriptor.raw, UInt32(CLINUX_EPOLLIN), latch.token)
    }
    latch.isArmed = true
    latch.hasFired = false
  }

  public func remove(_ latch: Latch) {
    // Cancelled, its answer is still to be taken; until then the kernel may look at its memory.
    if latch.isArmed { _ = clinux_aio_cancel(context, latch.request) }
    collect()
    latches[latch.token] = nil
  }

  /// Learns which have fired.
  public func collect() {
    var tokens = [UInt64](repeating: 0, count: 64)
    while true {
      let count = clinux_aio_take(context, &tokens, 64)
      if count <= 0 { return }
      for token in tokens.prefix(Int(count)) {
        latches[token]?.isArmed = false
        latches[token]?.hasFired = true
      }
    }
  }
}
