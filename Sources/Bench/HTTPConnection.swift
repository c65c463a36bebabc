import Glibc
import Linux
import Supervision

/// A connection to the program, which stays open while the program sleeps. It is opened again only
/// if the server has closed it.
final class HTTPConnection {
  private let address: HTTPAddress
  private let interruptions: Interruptions
  private var socket: Descriptor?
  /// How many times the server had closed the connection.
  private(set) var reconnections = 0

  init(_ address: HTTPAddress, _ interruptions: Interruptions) {
    self.address = address
    self.interruptions = interruptions
  }

  /// Returns whether a program accepts connections at the address.
  static func isInUse(_ address: HTTPAddress) -> Bool {
    let probe = TCPProbe(port: address.port)
    // The first attempt only begins a connection.
    for _ in 0..<20 {
      if probe.attempt() { return true }
      pauseThread(for: .milliseconds(1))
    }
    return false
  }

  func close() { socket = nil }

  /// Sends one request on a new connection, and returns its response. The result is nil if no
  /// program accepts connections, or if it closes this one at once.
  func attempt(until deadline: Deadline) throws -> HTTPResponse? {
    close()
    do throws(SystemCallError) { try connect() } catch {
      if [ECONNREFUSED, ECONNRESET, ETIMEDOUT, EAGAIN].contains(error.code) { return nil }
      throw error
    }
    // If the request can't be sent, the program doesn't answer yet.
    guard (try? send()) != nil else { return nil }
    do { return try receive(nil, until: deadline).response } catch is ConnectionClosed {
      close()
      return nil
    }
  }

  /// Sends the request. A sleeping program finds it when it runs again.
  func ask() throws {
    if let socket, isClosedByServer(socket) {
      close()
      reconnections += 1
    }
    if socket == nil { try connect() }
    try send()
  }

  /// Checks that the sleeping program doesn't answer: the measurement would be wrong.
  func checkSilence() throws {
    guard let socket else { return }
    if try interruptions.wait(for: [socket.raw], until: Deadline(in: .milliseconds(2))) != nil {
      throw BenchError.failed("the program answered while it slept")
    }
  }

  /// Receives the response to `ask`. Returns the time of its first byte (CLOCK_MONOTONIC, ns).
  func answer(to order: WakeOrder, until deadline: Deadline) throws -> Int64 {
    let received: (moment: Int64, response: HTTPResponse)
    do { received = try receive(order, until: deadline) } catch is ConnectionClosed {
      // The server's timeout closed the connection when the program resumed. The time of a new
      // connection is part of the measurement.
      close()
      reconnections += 1
      try connect()
      try send()
      received = try receive(order, until: deadline)
    }
    guard received.response.isSuccess else {
      throw BenchError.program("the program answered with status \(received.response.status)")
    }
    return received.moment
  }

  // MARK: the socket

  private struct ConnectionClosed: Error {}

  private func connect() throws(SystemCallError) {
    let new = try Descriptor.socket(family: AF_INET, type: SOCK_STREAM)
    new.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, to: true)
    try InternetAddress("127.0.0.1", address.port)?.connect(new, on: address.host)
    socket = new
  }

  private func isClosedByServer(_ socket: Descriptor) -> Bool {
    var byte: UInt8 = 0
    // A server sends nothing between two requests. If the socket can be read, the server has closed
    // it.
    return kernelResult { recv(socket.raw, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) }
      != -Int(EAGAIN)
  }

  private func send() throws {
    guard let socket else { return }
    let request =
      "GET \(address.path) HTTP/1.1\r\nHost: \(address.host)\r\nAccept: */*\r\n\r\n"
    try socket.sendAll(Array(request.utf8), on: address.host)
  }

  private func receive(
    _ order: WakeOrder?, until deadline: Deadline
  ) throws -> (moment: Int64, response: HTTPResponse) {
    var response = HTTPResponse()
    var moment: Int64?
    var order = order
    while !response.isComplete {
      guard let socket else { throw ConnectionClosed() }
      guard
        let ready = try interruptions.wait(
          for: [socket.raw] + (order.map { [$0.descriptor] } ?? []), until: deadline)
      else { throw BenchError.program("the program did not answer in time") }
      if ready == 1 {
        if let failure = order?.failure { throw failure }
        order = nil
        continue
      }
      let bytes = try read(socket)
      moment = moment ?? Clocks.monotonic
      if bytes.isEmpty, !response.end() { throw ConnectionClosed() }
      do throws(HTTPResponse.Failure) { try response.feed(bytes[...]) } catch {
        throw BenchError.program("the program's answer is not HTTP/1.1: \(error)")
      }
    }
    if response.closes { close() }
    return (moment ?? Clocks.monotonic, response)
  }

  private func read(_ socket: Descriptor) throws -> [UInt8] {
    do throws(SystemCallError) { return try socket.read(upTo: 64 << 10) } catch {
      if error.code == ECONNRESET { return [] }
      throw error
    }
  }
}
