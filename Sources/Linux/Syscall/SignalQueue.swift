import CLinux
import Glibc

/// A queue from which signals are read (signalfd(2)). The initializer blocks the signals in the
/// calling thread, and so in threads that it starts later. They stay blocked unless the caller
/// restores its mask.
public struct SignalQueue: Sendable {
  /// The queue's descriptor. It is readable when a signal waits, and reading it doesn't block.
  public let descriptor: Descriptor

  public struct Arrival: Hashable, Sendable {
    public var number: Int32
    /// True if the kernel has sent the signal to the terminal's whole foreground process group.
    public var isFromTerminal: Bool
  }

  public init(_ signals: [Int32]) throws(SystemCallError) {
    descriptor = Descriptor(
      owning: try shim("signalfd") { clinux_signalfd(signals, Int32(signals.count)) })
  }

  public var raw: Int32 { descriptor.raw }

  /// Reads the next signal's number; nil if no signal waits.
  public func next() -> Int32? { nextArrival()?.number }

  /// Reads the next signal; nil if none waits.
  public func nextArrival() -> Arrival? { read(upTo: 1).first }

  /// Reads up to 16 waiting signals, in the kernel's order. If there are more, the descriptor stays
  /// readable.
  public func arrivals() -> [Arrival] { read(upTo: 16) }

  private func read(upTo limit: Int) -> [Arrival] {
    let size = Self.recordLength
    // The result is empty if no signal waits (EAGAIN). The kernel has no other reason to refuse.
    let bytes = (try? descriptor.read(upTo: limit * size)) ?? []
    return bytes.withUnsafeBytes { records in
      stride(from: 0, through: records.count - size, by: size).map { start in
        let code = records.loadUnaligned(fromByteOffset: start + Self.codeOffset, as: Int32.self)
        return Arrival(
          number: records.loadUnaligned(fromByteOffset: start, as: Int32.self),
          isFromTerminal: code == SI_KERNEL)
      }
    }
  }

  /// The size of struct signalfd_siginfo in bytes. It begins with the signal's number, the error,
  /// and the code of how the signal was sent.
  private static let recordLength = 128
  private static let codeOffset = 8
}
