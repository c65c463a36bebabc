import Glibc
import Linux

/// The process that started the wrapper.
struct Caller {
  /// Readable when the process has ended; nil if it had ended before.
  let descriptor: Descriptor?
  /// True if the caller is a Jupyter server, and the program is its kernel. A kernel ends with its
  /// server: it compares the pid of its parent, which is the wrapper here. And the server
  /// interrupts the kernel's whole process group, which isn't the wrapper's.
  let servesKernels: Bool

  /// - Parameter announced: the pid that jupyter_client sets for a kernel that has to end with the
  ///   process that started it (JPY_PARENT_PID). A kernel's own children inherit it, but it is the
  ///   pid of none of their parents.
  static func ofThisProcess(announced: String?) -> Caller {
    let parent = getppid()
    // An error means that the caller has ended already, and there is nothing to watch.
    let descriptor = try? Descriptor.pidfd(of: parent)
    return Caller(
      descriptor: descriptor,
      servesKernels: announced.flatMap { Int32($0) } == parent && descriptor != nil)
  }
}
