import Glibc
import Linux

/// The process that started the wrapper.
struct Caller {
  /// Becomes readable at its end; nil: it has ended already.
  let descriptor: Descriptor?
  /// It is a Jupyter server, and the program is its kernel. A kernel ends with its server: it compares the pid
  /// of its parent, which a wrapper is. And its server interrupts the kernel's whole process group, which
  /// isn't the wrapper's.
  let servesKernels: Bool

  /// - Parameter announced: what jupyter_client sets for a kernel that has to end with the process that started
  ///   it. A kernel's own children inherit it, and it names none of their parents.
  static func ofThisProcess(announced: String?) -> Caller {
    let parent = getppid()
    // An error means that the caller has ended already, and there is nothing to watch.
    let descriptor = try? Descriptor.pidfd(of: parent)
    return Caller(
      descriptor: descriptor,
      servesKernels: announced.flatMap { Int32($0) } == parent && descriptor != nil)
  }
}
