import CLinux
import Glibc

/// A connection that the kernel has made and no process has accepted, as `/proc/net/tcp` shows it.
public struct UnacceptedConnection: Hashable, Sendable {
  public var port: UInt16
  /// Bytes that have arrived on it.
  public var unread: Int
  /// The other end has closed its side.
  public var isClosedByPeer: Bool

  /// The other end has closed it without sending a byte.
  public var isEmpty: Bool { isClosedByPeer && unread == 0 }

  /// The connections at a port in a process's network. A connection that was reset isn't listed.
  public static func list(
    at port: UInt16, networkOf pid: Int32
  ) throws(SystemCallError) -> [UnacceptedConnection] {
    var all = UnacceptedConnections(port: port)
    for table in ["tcp", "tcp6"] {
      do throws(SystemCallError) {
        try all.add { () throws(SystemCallError) in try readFile("/proc/\(pid)/net/\(table)") }
      } catch {
        // No IPv6 on this machine.
        if error.code != ENOENT || table == "tcp" { throw error }
      }
    }
    return all.list
  }
}

/// What one or more readings of the kernel's tables have shown. A reading gives a page of a table at a time. When other
/// sockets come or end between two pages, the kernel counts again from the table's start, and lists a connection twice
/// or not at all.
struct UnacceptedConnections {
  let port: UInt16
  /// By its addresses.
  private var found: [ArraySlice<UInt8>: UnacceptedConnection] = [:]

  init(port: UInt16) { self.port = port }

  var list: [UnacceptedConnection] { Array(found.values) }

  /// Reads a table, and if it is longer than a page, until a reading has shown no connection that wasn't known.
  mutating func add<Failure: Error>(_ read: () throws(Failure) -> [UInt8]) throws(Failure) {
    for reading in 0..<Self.mostReadings {
      let known = found.count
      let table = try read()
      add(table)
      if !mayBeTorn(table) || reading > 0 && found.count == known { return }
    }
  }

  /// Clients that connect at a high rate: the next look sees the rest.
  private static let mostReadings = 8

  /// Columns of proc_pid_net(5): `sl local rem st tx_queue:rx_queue tr:when retrnsmt uid timeout inode`.
  private mutating func add(_ table: [UInt8]) {
    for line in table.split(separator: UInt8(ascii: "\n")).dropFirst() {
      let words = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
      guard words.count > 9, words[9].elementsEqual("0".utf8), ends(words[1]) else { continue }
      let isEstablished = words[3].elementsEqual("01".utf8)
      let isClosedByPeer = words[3].elementsEqual("08".utf8)
      guard isEstablished || isClosedByPeer,
        let unread = Int(String(decoding: words[4].suffix(8), as: UTF8.self), radix: 16)
      else { continue }
      // The other end's FIN counts as one byte.
      found[line[words[1].startIndex..<words[2].endIndex]] = UnacceptedConnection(
        port: port, unread: isClosedByPeer ? max(0, unread - 1) : unread,
        isClosedByPeer: isClosedByPeer)
    }
  }

  private func ends(_ address: ArraySlice<UInt8>) -> Bool {
    UInt16(String(decoding: address.suffix(4), as: UTF8.self), radix: 16) == port
  }
}

/// Whether a text of `/proc/net/tcp` or `tcp6` was read in more than one piece, so that lines may be missing or repeated: a
/// piece is the lines that fit into a page, and a line has up to 200 bytes.
public func mayBeTorn(_ table: [UInt8]) -> Bool { table.count + 256 > pageSize }

/// Takes a connection from a listener's queue; nil if there is none.
public func acceptConnection(_ listener: Descriptor) throws(SystemCallError) -> Descriptor? {
  // The queue is shared with the worker, and whether `accept` blocks is the worker's choice.
  guard listener.inputEvents != 0 else { return nil }
  do throws(SystemCallError) {
    return Descriptor(
      foreign: try opening("a connection") { () throws(SystemCallError) in
        try shim("accept4", on: "a listener") { clinux_accept_shared(listener.raw) }
      })
  } catch {
    if error.code == EAGAIN || error.code == ECONNABORTED { return nil }
    throw error
  }
}
