import CLinux
import Glibc

/// A connection that the kernel has made and no process has accepted, as `/proc/net/tcp` shows it.
public struct UnacceptedConnection: Hashable, Sendable {
  public var port: UInt16
  /// The number of bytes that have arrived on the connection.
  public var unread: Int
  /// True if the other end has closed its side.
  public var isClosedByPeer: Bool

  /// True if the other end has closed the connection without sending a byte.
  public var isEmpty: Bool { isClosedByPeer && unread == 0 }

  /// Lists the connections at a port in the network namespace of a process. A connection that was
  /// reset isn't listed.
  ///
  /// - Parameter stopsAtUse: true: others may be missing if one isn't empty. Long tables are then
  ///   read once.
  public static func list(
    at port: UInt16, networkOf pid: Int32, stopsAtUse: Bool = false
  ) throws(SystemCallError) -> [UnacceptedConnection] {
    var all = UnacceptedConnections(port: port, stopsAtUse: stopsAtUse)
    for table in ["tcp", "tcp6"] {
      do throws(SystemCallError) {
        try all.add { () throws(SystemCallError) in try readFile("/proc/\(pid)/net/\(table)") }
      } catch {
        // A machine without IPv6 has no second table.
        if error.code != ENOENT || table == "tcp" { throw error }
      }
    }
    return all.list
  }
}

/// The connections that one or more readings of the kernel's tables have shown. A reading returns a
/// page of a table at a time. If sockets are added or removed between two pages, the kernel counts
/// again from the start of the table, and lists a connection twice or not at all.
struct UnacceptedConnections {
  let port: UInt16
  /// True if a connection that isn't empty suffices.
  let stopsAtUse: Bool
  /// The connections by their address columns, local and remote.
  private var connections: [ArraySlice<UInt8>: UnacceptedConnection] = [:]

  init(port: UInt16, stopsAtUse: Bool = false) {
    (self.port, self.stopsAtUse) = (port, stopsAtUse)
  }

  var list: [UnacceptedConnection] { Array(connections.values) }

  /// Reads a table. A table of more than one page is read again until a reading shows no new
  /// connection.
  mutating func add<Failure: Error>(_ read: () throws(Failure) -> [UInt8]) throws(Failure) {
    for reading in 0..<Self.maxReadings {
      let countBefore = connections.count
      let table = try read()
      add(table)
      if stopsAtUse, connections.values.contains(where: { !$0.isEmpty }) { return }
      if !mayBeTorn(table) || reading > 0 && connections.count == countBefore { return }
    }
  }

  /// The maximum number of readings. If clients connect at a high rate, the next poll finds the
  /// remaining connections.
  private static let maxReadings = 8

  /// The columns are those of proc_pid_net(5): `sl local rem st tx_queue:rx_queue tr:when retrnsmt
  /// uid timeout inode`.
  private mutating func add(_ table: [UInt8]) {
    for line in table.split(separator: UInt8(ascii: "\n")).dropFirst() {
      let columns = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
      guard columns.count > 9, columns[9].elementsEqual("0".utf8), hasPort(columns[1]) else {
        continue
      }
      let isEstablished = columns[3].elementsEqual("01".utf8)
      let isClosedByPeer = columns[3].elementsEqual("08".utf8)
      guard isEstablished || isClosedByPeer,
        let unread = Int(String(decoding: columns[4].suffix(8), as: UTF8.self), radix: 16)
      else { continue }
      // The other end's FIN counts as one byte.
      connections[line[columns[1].startIndex..<columns[2].endIndex]] = UnacceptedConnection(
        port: port, unread: isClosedByPeer ? max(0, unread - 1) : unread,
        isClosedByPeer: isClosedByPeer)
    }
  }

  private func hasPort(_ address: ArraySlice<UInt8>) -> Bool {
    UInt16(String(decoding: address.suffix(4), as: UTF8.self), radix: 16) == port
  }
}

/// Whether a text of `/proc/net/tcp` or `tcp6` was read in more than one piece, so that lines may
/// be missing or repeated. A piece is the lines that fit into a page, and a line has up to 200
/// bytes.
public func mayBeTorn(_ table: [UInt8]) -> Bool { table.count + 256 > pageSize }

/// Accepts a connection from a listener's queue without waiting. It returns nil if there is none.
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
