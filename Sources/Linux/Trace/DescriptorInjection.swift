import CLinux
import Glibc

extension Injector {
  /// Gives the process a duplicate of a descriptor of this process, through a pair of sockets that
  /// the process opens and closes again. It returns the descriptor's number in the process.
  ///
  /// If this process dies meanwhile, up to two sockets and a page of memory remain in the other
  /// one.
  public func pass(_ descriptor: Descriptor) throws(TraceError) -> Int32 {
    // The kernel writes here on behalf of the process. The process may not write to the scratch
    // area, so another page is mapped.
    let flags = UInt64(MAP_PRIVATE | MAP_ANONYMOUS)
    let area = UInt64(
      bitPattern: try checked(
        "mmap",
        try call(
          CLINUX_SYS_mmap, [0, pageSize, UInt64(PROT_READ | PROT_WRITE), flags, UInt64.max, 0])))
    let number: Int32
    do throws(TraceError) { number = try pass(descriptor, through: area) } catch {
      _ = try call(CLINUX_SYS_munmap, [area, pageSize, 0, 0, 0, 0])
      throw error
    }
    _ = try call(CLINUX_SYS_munmap, [area, pageSize, 0, 0, 0, 0])
    return number
  }

  private func pass(
    _ descriptor: Descriptor, through area: UInt64
  ) throws(TraceError) -> Int32 {
    let kind = UInt64(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
    _ = try perform(
      "socketpair", number: CLINUX_SYS_socketpair,
      arguments: [UInt64(AF_UNIX), kind, 0, area, 0, 0])
    let ends: [Int32] = try read(2, at: area)
    do throws(TraceError) {
      let number = try pass(descriptor, from: ends[0], to: ends[1], through: area)
      for end in ends { try closeDescriptor(end) }
      return number
    } catch {
      for end in ends { try closeDescriptor(end) }
      throw error
    }
  }

  private func pass(
    _ descriptor: Descriptor, from sender: Int32, to receiver: Int32, through area: UInt64
  ) throws(TraceError) -> Int32 {
    try session.wrap { () throws(SystemCallError) in
      let end = try Userfault.duplicate(sender, of: session.pid)
      try shim("sendmsg", on: "pid \(session.pid)") {
        clinux_send_with_descriptor(end.raw, [0], 1, descriptor.raw)
      }
    }
    // The page has a struct iovec, one byte, the control message, and a struct msghdr.
    let (vector, byte, control, header) = (area, area + 64, area + 128, area + 256)
    try write([byte, 1], at: vector)
    try write([0, 0, vector, 1, control, 24, 0], at: header)
    _ = try perform(
      "recvmsg", number: CLINUX_SYS_recvmsg,
      arguments: [
        UInt64(truncatingIfNeeded: receiver), header, UInt64(MSG_DONTWAIT | MSG_CMSG_CLOEXEC), 0,
        0, 0,
      ])
    // The control message is a struct cmsghdr (length, level and kind) and the descriptor's number.
    let got: [Int32] = try read(5, at: control)
    guard got[0] == 20, got[2] == SOL_SOCKET, got[3] == 1 /* SCM_RIGHTS */ else {
      throw .injected("recvmsg", pid: session.pid, code: EBADF)
    }
    return try moveAway(Int64(got[4]))
  }

  private func read(_ count: Int, at address: UInt64) throws(TraceError) -> [Int32] {
    let bytes = try session.wrap { () throws(SystemCallError) in
      try memory.readBytes(at: address, count: count * 4)
    }
    return bytes.withUnsafeBytes { bytes in
      (0..<count).map { bytes.loadUnaligned(fromByteOffset: $0 * 4, as: Int32.self) }
    }
  }

  private func write(_ words: [UInt64], at address: UInt64) throws(TraceError) {
    try write(words.withUnsafeBytes { Array($0) }, at: address)
  }
}
