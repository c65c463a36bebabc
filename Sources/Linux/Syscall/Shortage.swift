import Glibc
import Synchronization

extension SystemCallError {
  /// Descriptors, memory or another limited resource were short: the same call may succeed a moment later.
  public var isShortage: Bool {
    [EMFILE, ENFILE, ENOMEM, EAGAIN, ENOBUFS, EINTR].contains(code)
  }
}

/// Reads something of a process. `nil`: it has ended, it was closed, or this process may not read it, which
/// no later try changes.
///
/// - Throws: if a resource is short: then nothing is known yet, and a later try may succeed.
public func readIfPossible<Value>(
  _ read: () throws(SystemCallError) -> Value
) throws(SystemCallError) -> Value? {
  do throws(SystemCallError) { return try read() } catch {
    if error.isShortage { throw error }
    return nil
  }
}

/// Descriptors that are held for wakes. A worker that sleeps can't be woken without a few, and the clients of a
/// daemon, its workers and its connections may use up all others.
public enum DescriptorReserve {
  private static let held = Mutex<[Descriptor]>([])
  @TaskLocal private static var mayBeUsed = false

  /// A wake needs its image, its base, the memory of a process, and one or two files of /proc at a time. With a
  /// low limit of open files the reserve mustn't take most of them.
  static func size(limit: UInt64) -> Int { Int(min(16, limit / 32)) }

  /// Completes the reserve, as far as that is possible now.
  public static func fill() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    let size = size(limit: UInt64(limit.rlim_cur))
    while held.withLock({ $0.count < size }) {
      // As many as there are; the next wake tries again.
      guard let spare = try? Descriptor.open("/dev/null") else { return }
      held.withLock { $0.append(spare) }
    }
  }

  /// Descriptors that this thread opens in `body` may be taken from the reserve, which is completed afterwards.
  public static func use<Value, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    defer { fill() }
    return try $mayBeUsed.withValue(true) {
      Result { () throws(Failure) in try body() }
    }.get()
  }

  /// False: there is none left, or it isn't for this thread.
  fileprivate static func giveUpOne() -> Bool {
    mayBeUsed && held.withLock { $0.popLast() } != nil
  }
}

/// A call that makes a descriptor. If none is free, a wake gives up one of the reserve and repeats it.
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
      guard error.code == EMFILE || error.code == ENFILE, DescriptorReserve.giveUpOne() else {
        throw error
      }
    }
  }
}
