import CLinux
import Glibc

/// Signals as something to poll for: from here on they are blocked in this thread and those that it
/// starts, and wait here. Blocked they stay; for a program that ends when it has seen one.
public struct SignalQueue: ~Copyable {
  private let descriptor: Descriptor

  public struct Arrival: Hashable, Sendable {
    public var number: Int32
    /// Sent by the kernel to all of the terminal's foreground process group.
    public var isFromTerminal: Bool
  }

  public init(_ signals: [Int32]) throws(SystemCallError) {
    descriptor = Descriptor(
      owning: try shim("signalfd") { clinux_signalfd(signals, Int32(signals.count)) })
  }

  /// Readable when one waits.
  public var raw: Int32 { descriptor.raw }

  /// The next signal's number; nil where none waits.
  public func next() -> Int32? { nextArrival()?.number }

  public func nextArrival() -> Arrival? {
    // struct signalfd_siginfo is 128 bytes and begins with the number, the error, and who sent it.
    var record = [UInt32](repeating: 0, count: 32)
    let count = record.withUnsafeMutableBytes { read(descriptor.raw, $0.baseAddress, $0.count) }
    guard count == 128 else { return nil }
    return Arrival(
      number: Int32(bitPattern: record[0]),
      isFromTerminal: Int32(bitPattern: record[2]) == SI_KERNEL)
  }
}
