import CLinux
import Glibc

/// One message from a socket to which other processes write. It is received without waiting. The
/// descriptors that came with it are closed on another thread (`Closer`), because their last close
/// may wait.
public struct Reception {
  /// The number of bytes received.
  public var count: Int
  /// The sender's pid if the socket requests it (SO_PASSCRED), otherwise 0.
  public var pid: Int32
  /// The descriptors that came with the message, in their order. The caller keeps or drops them.
  public var passed: [Descriptor]

  /// Receives one message. It returns nil if no message has arrived (EAGAIN, EINTR).
  public static func receive(
    from socket: Descriptor, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemCallError) -> Reception? {
    var ancillary = clinux_passed()
    let count = clinux_receive(socket.raw, buffer.baseAddress, Int64(buffer.count), &ancillary)
    if count == -Int64(EAGAIN) || count == -Int64(EINTR) { return nil }
    if count < 0 { throw SystemCallError("recvmsg", on: "", code: Int32(-count)) }
    var reception = Reception(count: Int(count), pid: ancillary.pid, passed: [])
    let passed = Int(ancillary.count)
    if passed > 0 {
      withUnsafeBytes(of: &ancillary.descriptors) { bytes in
        reception.passed = bytes.bindMemory(to: Int32.self).prefix(passed).map {
          Descriptor(received: $0)
        }
      }
    }
    return reception
  }

  /// Receives one message into an array, which gets as many bytes as were received. It returns nil
  /// if no message has arrived.
  ///
  /// - Parameter capacity: the maximum number of bytes. What is beyond it in a datagram is lost.
  public static func receive(
    from socket: Descriptor, _ capacity: Int, _ bytes: inout [UInt8]
  ) throws(SystemCallError) -> Reception? {
    var failure: SystemCallError?
    var reception: Reception?
    bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      do throws(SystemCallError) {
        reception = try receive(from: socket, into: UnsafeMutableRawBufferPointer(buffer))
      } catch { failure = error }
      count = reception?.count ?? 0
    }
    if let failure { throw failure }
    return reception
  }
}
