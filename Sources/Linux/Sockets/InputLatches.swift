import CLinux
import Glibc

/// Records whether input has arrived at descriptors since they were armed, even if another process
/// has already read it.
///
/// epoll can't do that. It checks a listening socket again when it is asked, and finds that the
/// connection has been accepted. A poll of Linux's native AIO is completed inside the wake-up
/// itself and keeps its result, so no thread needs to run before `collect`.
///
/// An instance belongs to one thread.
public final class InputLatches {
  private let context: UInt64
  private var latches: [UInt64: Latch] = [:]
  private var counter: UInt64 = 0

  /// The latch of one descriptor. The kernel holds that descriptor (and nothing else) until the
  /// latch fires or is removed.
  public final class Latch {
    fileprivate let token: UInt64
    fileprivate let request: UnsafeMutableRawPointer
    public fileprivate(set) var isArmed = false
    /// True if the latch has fired since the last `arm`, even if that failed.
    public fileprivate(set) var hasFired = false

    fileprivate init(token: UInt64) {
      self.token = token
      request = .allocate(byteCount: Int(clinux_aio_request_size()), alignment: 16)
    }

    deinit { request.deallocate() }
  }

  /// - Parameter capacity: the number of latches that can be armed at the same time.
  public init(capacity: Int32) throws(SystemCallError) {
    var error: Int32 = 0
    context = clinux_aio_setup(capacity, &error)
    if error != 0 { throw SystemCallError("io_setup", on: "\(capacity) polls", code: error) }
  }

  deinit { _ = clinux_aio_destroy(context) }

  /// Makes a latch, which isn't armed yet.
  public func add() -> Latch {
    counter += 1
    let latch = Latch(token: counter)
    latches[counter] = latch
    return latch
  }

  /// Arms a latch from now on. If input is already present, it fires at once.
  public func arm(_ latch: Latch, at descriptor: Descriptor) throws(SystemCallError) {
    // A latch that can't be armed again reports its input once.
    latch.hasFired = false
    try shim("io_submit", on: "a poll") {
      clinux_aio_poll(
        context, latch.request, descriptor.raw, UInt32(CLINUX_EPOLLIN), latch.token)
    }
    latch.isArmed = true
  }

  /// Disarms the latch and forgets it.
  public func remove(_ latch: Latch) {
    // The completion of a cancelled request must still be read. Until then the kernel may access
    // the request's memory.
    if latch.isArmed { _ = clinux_aio_cancel(context, latch.request) }
    collect()
    latches[latch.token] = nil
  }

  /// Reads the completed polls without waiting, and updates `isArmed` and `hasFired` of their
  /// latches.
  public func collect() {
    var tokens = [UInt64](repeating: 0, count: 64)
    while true {
      let count = clinux_aio_collect(context, &tokens, 64)
      if count <= 0 { return }
      for token in tokens.prefix(Int(count)) {
        latches[token]?.isArmed = false
        latches[token]?.hasFired = true
      }
    }
  }
}
