import Glibc
import Linux

/// Finds the user of the other end of a loopback connection.
///
/// A port of 127.0.0.1 is open to all users of the machine. The kernel lists each socket with its
/// user in /proc/net/tcp and tcp6 (proc_net(5)); both ends of a loopback connection are there.
enum PeerCheck {
  /// Returns the user; nil if no socket of this network namespace is the other end.
  static func user(of peer: Endpoint, connectedTo local: Endpoint) throws(SystemCallError)
    -> UInt32?
  {
    for _ in 0..<readings {
      let table = try readFile("/proc/net/tcp")
      let table6 = try tableOfIPv6()
      if let user = user(of: peer, connectedTo: local, in: table, isIPv6: false)
        ?? user(of: peer, connectedTo: local, in: table6, isIPv6: true)
      {
        return user
      }
      if !mayBeTorn(table), !mayBeTorn(table6) { return nil }
    }
    return nil
  }

  /// The number of readings. The kernel returns a page of a table at a time, and may leave out a
  /// socket if others are opened or closed between two pages.
  private static let readings = 4

  private static func tableOfIPv6() throws(SystemCallError) -> [UInt8] {
    do throws(SystemCallError) { return try readFile("/proc/net/tcp6") } catch {
      // A kernel without IPv6 has no such file.
      if error.code == ENOENT { return [] }
      throw error
    }
  }

  /// Returns the user from the text of one of these files.
  static func user(
    of peer: Endpoint, connectedTo local: Endpoint, in table: [UInt8], isIPv6: Bool
  ) -> UInt32? {
    guard let theirs = column(peer, isIPv6: isIPv6), let ours = column(local, isIPv6: isIPv6) else {
      return nil
    }
    let columns = " \(theirs) \(ours) "
    // The list may be long, and another user may make it longer, so it isn't split for one line.
    return (table + [0]).withUnsafeBytes { bytes in
      guard var cursor = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
      while let match = strstr(cursor, columns) {
        cursor = UnsafePointer(match) + columns.utf8.count
        let line = UnsafeRawBufferPointer(start: cursor, count: strcspn(cursor, "\n"))
        // The fields are: state, queues, timer, retransmits, user, timeout, inode.
        let fields = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 7)
        // A socket that its process has closed has no inode, and no user any more: many kernels
        // show it as root's.
        if fields.count > 6, fields[6] != "0" { return UInt32(fields[4]) }
      }
      return nil
    }
  }

  /// Returns the endpoint as the kernel prints it: words of 32 bits in the machine's byte order,
  /// then the port.
  private static func column(_ endpoint: Endpoint, isIPv6: Bool) -> String? {
    if endpoint.address.isIPv6, !isIPv6 { return nil }
    let bytes = isIPv6 ? endpoint.address.asIPv6 : endpoint.address.bytes
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 4) {
      for byte in bytes[start..<(start + 4)].reversed() { text += hex(Int(byte), digits: 2) }
    }
    return "\(text):\(hex(endpoint.port, digits: 4))"
  }

  private static func hex(_ number: Int, digits: Int) -> String {
    let text = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }
}
