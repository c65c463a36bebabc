import CLinux
import Glibc

/// Signals that can be polled for (signalfd(2)): from here on they are blocked in this thread and in threads
/// that it starts, and are read from this queue. They stay blocked unless the caller restores its mask.
public struct SignalQueue: Sendable {
  /// Readable when a signal waits; it doesn't block.
  public let descriptor: Descriptor

  public struct Arrival: Hashable, Sendable {
    public var number: Int32
    /// The kernel has sent the signal to the terminal's whole foreground process group.
    public var isFromTerminal: Bool
  }

  public init(_ signals: [Int32]) throws(SystemCallError) {
    descriptor = Descriptor(
      owning: try shim("signalfd") { clinux_signalfd(signals, Int32(signals.count)) })
  }

  public var raw: Int32 { descriptor.raw }

  /// The next signal's number; nil if none waits.
  public func next() -> Int32? { nextArrival()?.number }

  public func nextArrival() -> Arrival? { read(upTo: 1).first }

  /// Up to 16 waiting signals, in the kernel's order. If there are more, the descriptor stays readable.
  public func arrivals() -> [Arrival] { read(upTo: 16) }

  private func read(upTo limit: Int) -> [Arrival] {
    let size = Self.recordLength
    // Empty if no signal waits (EAGAIN). The kernel has no other reason to refuse.
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

  /// struct signalfd_siginfo is 128 bytes and begins with the number, the error, and the code of how it was
  /// sent.
  private static let recordLength = 128
  private static let codeOffset = 8
}
