#if DEBUG
  import Glibc
  import Synchronization

  /// Makes calls that open a file or make a descriptor fail, for tests. It affects the current task
  /// or thread only, so that tests that run at the same time aren't hit.
  public final class InjectedFault: Sendable {
    private let code: Int32
    private let failing: Range<Int>
    private let subject: String?
    private let passed = Mutex<[String]>([])

    /// - Parameters:
    ///   - code: the error as in errno(3). A call that EINTR interrupts is repeated, as by the
    ///     funnel of system calls.
    ///   - failing: the calls that fail, counted from 0.
    ///   - subject: only calls about this path or object are counted; `nil`: all calls.
    public init(_ code: Int32, at failing: Range<Int> = 0..<Int.max, of subject: String? = nil) {
      self.code = code
      self.failing = failing
      self.subject = subject
    }

    @TaskLocal private static var current: InjectedFault?

    /// The subjects of the calls in their order, including those that failed.
    public var subjects: [String] { passed.withLock { $0 } }

    public func during<Value>(_ body: () throws -> Value) rethrows -> Value {
      try Self.$current.withValue(self) { try body() }
    }

    static func pass(_ subject: String) throws(SystemCallError) {
      guard let fault = current, fault.subject == nil || fault.subject == subject else { return }
      let number = fault.passed.withLock {
        $0.append(subject)
        return $0.count - 1
      }
      guard fault.failing.contains(number), fault.code != EINTR else { return }
      throw SystemCallError("open", on: subject, code: fault.code)
    }
  }
#endif
