import Glibc
import Testing

@testable import Dashboard

@Suite("The user at the other end of a connection") struct PeerCheckTests {
  @Test("The user of the other end is found in the kernel's table, by both addresses and ports")
  func table() throws {
    let table = """
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout \
      inode
         0: 0100007F:1CF3 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 \
      1 1 0 100 0 0 10 0
         1: 0100007F:9C40 0100007F:1CF3 06 00000000:00000000 03:00000000 00000000     0        0 \
      0 3 0
         2: 0100007F:9C40 0100007F:1CF3 01 00000000:00000000 00:00000000 00000000  1007        0 \
      2 1 0 20 4 30 10 -1
         3: 0100007F:1CF3 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 \
      3 1 0 20 4 30 10 -1
      """
    let peer = Endpoint(address: try #require(IPAddress("127.0.0.1")), port: 40_000)
    let local = Endpoint(address: peer.address, port: 7411)
    #expect(
      PeerCheck.user(of: peer, connectedTo: local, in: Array(table.utf8), isIPv6: false) == 1007)
    #expect(
      PeerCheck.user(of: local, connectedTo: peer, in: Array(table.utf8), isIPv6: false) == 1000)
    let stranger = Endpoint(address: peer.address, port: 40_001)
    #expect(
      PeerCheck.user(of: stranger, connectedTo: local, in: Array(table.utf8), isIPv6: false) == nil)
  }

  @Test("A socket that its process has closed has no user, whichever the kernel shows")
  func closed() throws {
    let peer = Endpoint(address: try #require(IPAddress("127.0.0.1")), port: 40_000)
    let local = Endpoint(address: peer.address, port: 7411)
    for (state, user, inode, expected) in [
      ("05", 0, 0, nil), ("04", 0, 0, nil), ("01", 1000, 0, nil), ("06", 0, 0, nil),
      // Only its writing half is closed: a process still has the socket.
      ("05", 1007, 2, UInt32(1007)),
    ] {
      let table = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
        timeout inode
           1: 0100007F:9C40 0100007F:1CF3 \(state) 00000000:00000000 00:00000000 00000000 \(user) \
        0 \(inode) 1 0 20 4 30 10 -1
        """
      #expect(
        PeerCheck.user(of: peer, connectedTo: local, in: Array(table.utf8), isIPv6: false)
          == expected)
    }
  }

  @Test("A client of IPv4 that uses an IPv6 socket, and one of ::1, are found in the table of IPv6")
  func table6() throws {
    let table = """
        sl  local_address                         remote_address                        st \
      tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
         0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1CF3 01 0:0 \
      00:0 0  1001        0 2
         1: 00000000000000000000000001000000:9C40 00000000000000000000000001000000:1CF3 01 0:0 \
      00:0 0  1002        0 2
      """
    for (text, user) in [("127.0.0.1", UInt32(1001)), ("::1", 1002)] {
      let peer = Endpoint(address: try #require(IPAddress(text)), port: 40_000)
      let local = Endpoint(address: peer.address, port: 7411)
      #expect(
        PeerCheck.user(of: peer, connectedTo: local, in: Array(table.utf8), isIPv6: true) == user)
    }
  }
}
