import Glibc
import Linux
import TestSupport
import Testing

@testable import Control

@Suite struct Client {
  @Test func `A request arrives unchanged and gets its response`() throws {
    let daemon = try FakeDaemon { connection in
      guard let request = connection.requests(1).first else { return }
      connection.send(
        ControlResponse(
          id: request.id, result: .done,
          text:
            "\(request.verb.rawValue) \(request.worker ?? "") \(request.launch == Sample.launch)"))
    }
    var client = try ControlClient(connectingTo: daemon.path)
    let response = try client.perform(.run, worker: "api") { $0.launch = Sample.launch }
    #expect(response == ControlResponse(id: 1, result: .done, text: "run api true"))
  }

  @Test func `Responses that come out of order each reach the request that they answer`() throws {
    let daemon = try FakeDaemon { connection in
      for request in connection.requests(3).reversed() {
        connection.send(ControlResponse(id: request.id, result: .done, text: request.worker ?? ""))
      }
    }
    var client = try ControlClient(connectingTo: daemon.path)
    var ids: [UInt64] = []
    for name in ["a", "b", "c"] { ids.append(try client.send(.stop, worker: name)) }
    var texts: [String] = []
    for id in ids { texts.append(try client.response(to: id).text) }
    #expect(texts == ["a", "b", "c"])
  }

  @Test func `A response that comes byte by byte, with CRLF, is understood`() throws {
    let daemon = try FakeDaemon { connection in
      _ = connection.requests(1)
      for byte in Array("{\"id\":1,\"result\":\"done\",\"text\":\"ü\"}\r\n".utf8) {
        connection.send([byte])
      }
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(try client.perform(.ps).text == "ü")
  }

  @Test func `A large request and a large response arrive whole`() throws {
    let text = String(repeating: "0123456789", count: 90_000)
    let daemon = try FakeDaemon { connection in
      guard let request = connection.requests(1).first else { return }
      connection.send(ControlResponse(id: request.id, result: .done, text: request.worker ?? ""))
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(try client.perform(.stop, worker: text).text == text)
  }

  @Test func `An answer about several thousand workers arrives whole`() throws {
    let workers = (0..<6000).map { (number) -> WorkerReport in
      var worker = WorkerReport(name: "worker-\(number)", state: "hibernated")
      worker.log = String(repeating: "/a/path", count: 140)
      return worker
    }
    let daemon = try FakeDaemon { connection in
      guard let request = connection.requests(1).first else { return }
      var response = ControlResponse(id: request.id, result: .done, text: "")
      response.workers = workers
      connection.send(response)
    }
    var client = try ControlClient(connectingTo: daemon.path)
    let names = try client.perform(.ps).workers?.map { $0.name }
    #expect(names == workers.map { $0.name })
  }

  @Test func `A daemon that hangs up without an answer, or within a line, has closed early`() throws
  {
    for script in ["", "{\"id\":1,"] {
      let daemon = try FakeDaemon { connection in
        _ = connection.requests(1)
        connection.send(script)
      }
      var client = try ControlClient(connectingTo: daemon.path)
      let error = #expect(throws: ControlError.self) { try client.perform(.ps) }
      #expect(error == .closedEarly(path: daemon.path))
      #expect(error?.exit == .daemonEnded)
    }
  }

  @Test func `A daemon that hangs up without reading has closed early too`() throws {
    let daemon = try FakeDaemon { _ in }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(throws: ControlError.closedEarly(path: daemon.path)) {
      // This is more than a socket buffer, so that sending detects the end, too.
      try client.perform(.stop, worker: String(repeating: "x", count: 900_000))
    }
  }

  @Test func `A daemon that answers garbage is malformed`() throws {
    let daemon = try FakeDaemon { connection in
      _ = connection.requests(1)
      connection.send("220 mail.example.org ESMTP\r\n")
      connection.waitForEnd()
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(
      throws: ControlError.malformed(
        path: daemon.path, what: "not valid JSON, or a number is out of range")
    ) {
      try client.perform(.ps)
    }
  }

  @Test func `A line that a daemon never ends is an error and uses limited memory`() throws {
    let daemon = try FakeDaemon { connection in
      _ = connection.requests(1)
      connection.send([UInt8](repeating: 0x20, count: 10 << 20))
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(
      throws: ControlError.malformed(
        path: daemon.path, what: "a line is longer than 8388608 bytes")
    ) { try client.perform(.ps) }
  }

  @Test func `An answer to a request that wasn't made is refused`() throws {
    let daemon = try FakeDaemon { connection in
      _ = connection.requests(1)
      connection.send(ControlResponse(id: 99, result: .done, text: ""))
      connection.waitForEnd()
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(throws: ControlError.unexpectedResponse(id: 99)) { try client.perform(.ps) }
  }

  @Test func `A second answer to the same request is refused`() throws {
    let daemon = try FakeDaemon { connection in
      _ = connection.requests(2)
      for _ in 0..<2 { connection.send(ControlResponse(id: 1, result: .done, text: "")) }
      connection.waitForEnd()
    }
    var client = try ControlClient(connectingTo: daemon.path)
    let first = try client.send(.ps)
    let second = try client.send(.ps)
    #expect(try client.response(to: first).result == .done)
    #expect(throws: ControlError.unexpectedResponse(id: 1)) { try client.response(to: second) }
  }

  @Test func `A daemon that couldn't read the request says why`() throws {
    let daemon = try FakeDaemon { connection in
      connection.send(ControlResponse(id: 0, result: .badRequest, text: "`id` is missing"))
    }
    var client = try ControlClient(connectingTo: daemon.path)
    #expect(throws: ControlError.rejected(text: "`id` is missing")) { try client.perform(.ps) }
  }

  @Test func `A client can wait again for an answer after a time-out`() throws {
    let daemon = try FakeDaemon { connection in
      // It responds to the first request only when the second has arrived, which is after the
      // timeout.
      for request in connection.requests(2) {
        connection.send(ControlResponse(id: request.id, result: .done, text: "late"))
      }
    }
    var client = try ControlClient(connectingTo: daemon.path)
    let first = try client.send(.hibernate, worker: "w")
    let limit = Duration.milliseconds(20)
    let before = ContinuousClock.now
    #expect(throws: ControlError.timedOut(after: limit)) {
      try client.response(to: first, timeout: limit)
    }
    #expect(ContinuousClock.now - before >= limit)
    _ = try client.send(.ps)
    #expect(try client.response(to: first, timeout: .seconds(60)).text == "late")
  }

  @Test
  func
    `A client gets events in their order, also between answers and without waiting`()
    throws
  {
    let daemon = try FakeDaemon { connection in
      for request in connection.requests(2) {
        for text in ["one", "two"] {
          var event = ControlResponse(id: request.id, result: .event, text: text)
          event.event = EventRecord(time: "", kind: "state", text: "\(request.id) \(text)")
          connection.send(event)
        }
        connection.send(ControlResponse(id: request.id, result: .done, text: "done"))
      }
      _ = connection.requests(1)
    }
    var client = try ControlClient(connectingTo: daemon.path)
    let first = try client.send(.events) { $0.follow = true }
    let nothing = try client.nextEvent(within: .milliseconds(1))
    #expect(nothing == nil)
    let second = try client.send(.ps)
    _ = try client.response(to: second, timeout: .seconds(60))
    _ = try client.response(to: first, timeout: .seconds(60))
    // The events arrived before the responses, so they are found without waiting.
    var texts: [String] = []
    while let event = try client.nextEvent(within: .zero) { texts.append(event.text) }
    #expect(texts == ["1 one", "1 two", "2 one", "2 two"])
    _ = try client.send(.ps)
  }
}

@Suite struct Connecting {
  @Test func `A path without a socket is reported as no daemon`() throws {
    let scratch = try Scratch()
    let directory = scratch.path
    for path in ["\(directory)/control.sock", "\(directory)/no/control.sock"] {
      let error = #expect(throws: ControlError.self) { _ = try ControlClient(connectingTo: path) }
      #expect(error == .noDaemon(path: path))
      #expect(error?.exit == .noDaemon)
      #expect(
        error?.description
          == "no daemon answers at \(path); start one with `dormouse daemon -d`")
    }
  }

  @Test func `A socket that a dead daemon left behind is reported as no daemon`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/control.sock"
    _ = try UnixSocket.bound(to: path, .stream)
    #expect(throws: ControlError.noDaemon(path: path)) {
      _ = try ControlClient(connectingTo: path)
    }
  }

  @Test(.enabled(if: geteuid() != 0, "root may connect to everything"))
  func `A socket that may not be opened is refused by permissions`() throws {
    let daemon = try FakeDaemon { _ in }
    chmod(daemon.path, 0)
    #expect(throws: ControlError.refusedByPermissions(path: daemon.path)) {
      _ = try ControlClient(connectingTo: daemon.path)
    }
  }

  @Test func `A socket path of 107 bytes fits, and one of 108 bytes is an error with the limit`()
    throws
  {
    let fits = "/tmp/" + String(repeating: "x", count: 102)
    #expect(throws: ControlError.noDaemon(path: fits)) {
      _ = try ControlClient(connectingTo: fits)
    }
    let error = #expect(throws: ControlError.self) {
      _ = try ControlClient(connectingTo: fits + "x")
    }
    #expect(error == .pathTooLong(path: fits + "x", maximum: 107))
    #expect(
      error?.description.contains("has 108 bytes, more than the kernel's limit of 107") == true)
  }

  @Test(
    arguments: [
      (1000, 1000, true), (0, 1000, true), (1001, 1000, false), (1000, 0, false), (0, 0, true),
    ] as [(UInt32, UInt32, Bool)])
  func `A client sends its environment only to a daemon of its own user or of root`(
    listener: UInt32, user: UInt32, isTrusted: Bool
  ) {
    #expect(ControlClient.trusts(listener: listener, as: user, isNamed: false) == isTrusted)
    // Root may name another user's daemon. Other users may not.
    #expect(
      ControlClient.trusts(listener: listener, as: user, isNamed: true) == (isTrusted || user == 0))
  }
}
