import Glibc
import Synchronization

extension SystemCallError {
  /// True if descriptors, memory or another limited resource were short. The same call may succeed
  /// a moment later.
  public var isShortage: Bool {
    [EMFILE, ENFILE, ENOMEM, EAGAIN, ENOBUFS, EINTR].contains(code)
  }
}

/// Reads something of a process. It returns nil if the process has ended, if the object was closed,
/// or if this process may not read it; no later try changes that.
///
/// - Throws: the error if a resource is short. Then nothing is known, and a later try may succeed.
public func readIfPossible<Value>(
  _ read: () throws(SystemCallError) -> Value
) throws(SystemCallError) -> Value? {
  do throws(SystemCallError) { return try read() } catch {
    if error.isShortage { throw error }
    return nil
  }
}

/// Descriptors that are kept in reserve for wakes. A worker that sleeps can't be woken without a
/// few, and the daemon's clients, workers and connections may use up all others.
public enum DescriptorReserve {
  private static let spares = Mutex<[Descriptor]>([])
  @TaskLocal private static var mayBeUsed = false

  /// The size of the reserve. A wake needs its image, its base, the memory of a process, and one or
  /// two files of /proc at a time. If the limit of open files is low, the reserve must not use most
  /// of them.
  static func size(limit: UInt64) -> Int { Int(min(16, limit / 32)) }

  /// Completes the reserve, as far as descriptors are free now. Any thread may call it.
  public static func fill() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    let size = size(limit: UInt64(limit.rlim_cur))
    while spares.withLock({ $0.count < size }) {
      // No descriptor is free. The next wake tries again.
      guard let spare = try? Descriptor.open("/dev/null") else { return }
      spares.withLock { $0.append(spare) }
    }
  }

  /// Performs `body`. Calls of this thread that make a descriptor may use the reserve, which is
  /// completed afterwards.
  public static func use<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    defer { fill() }
    return try $mayBeUsed.withValue(true) {
      Result { () throws(Failure) in try body() }
    }.get()
  }

  /// Closes one descriptor of the reserve. It returns false if there is none left, or if this
  /// thread may not use the reserve.
  fileprivate static func releaseOne() -> Bool {
    mayBeUsed && spares.withLock { $0.popLast() } != nil
  }
}

/// Performs a call that makes a descriptor. If no descriptor is free, a wake gives up one of the
/// reserve and repeats the call.
func opening<Value>(
  _ subject: @autoclosure () -> String, _ call: () throws(SystemCallError) -> Value
) throws(SystemCallError) -> Value {
  while true {
    do throws(SystemCallError) {
      #if DEBUG
        try InjectedFault.pass(subject())
      #endif
      return try call()
    } catch {
      guard error.code == EMFILE || error.code == ENFILE, DescriptorReserve.releaseOne() else {
        throw error
      }
    }
  }
}
