import Glibc
import Hibernation
import Linux

/// A client that stays connected: HTTP, or redis' protocol.
final class Client {
  private let socket: Descriptor
  private let request: String

  init(port: UInt16, path: String) throws {
    request =
      path == "redis"
      ? "INCR bench\r\n" : "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n"
    socket = Descriptor(
      owning: try systemCall("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) })
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port.bigEndian)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    let raw = socket.raw
    _ = try withUnsafeBytes(of: &address) { bytes in
      try systemCall("connect") {
        connect(
          raw, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
      }
    }
  }

  func send() throws { try socket.writeAll(request) }

  /// Waits for the first bytes, and reads all that are present.
  func receive() throws {
    if try socket.read(upTo: 65536).isEmpty { fail("the server has closed the connection") }
  }

  /// Makes a whole exchange, with the bytes that may arrive after the first ones.
  func exchange() throws {
    try send()
    try receive()
    usleep(5000)
    var byte = [UInt8](repeating: 0, count: 65536)
    _ = recv(socket.raw, &byte, byte.count, Int32(MSG_DONTWAIT))
  }
}

/// Measures every way once in each round, so that the measurements are interleaved.
func bench(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count >= 7, let rounds = Int(arguments[0]), let port = UInt16(arguments[3]),
    arguments[5] == "--"
  else { throw Usage() }
  guard let cgroup = try openGroup(arguments[2]) else { throw Usage() }
  let victim = try start(arguments[6...], input: 0, output: 2, cgroup: cgroup)
  defer { kill(victim.pid, SIGKILL) }
  usleep(1_500_000)
  let target = HibernationTarget(
    name: "victim", root: victim.identity, session: victim.pid, cgroup: cgroup)
  let service = HibernationService()
  let image = arguments[1] + "/image"
  let client = try Client(port: port, path: arguments[4])
  for _ in 0..<3 { try client.exchange() }
  var times: [String: [Double]] = [:]
  var details: [String: String] = [:]
  for round in 0..<rounds {
    for way in ["cont", "eager", "sealed", "pushed", "hot", "later"] {
      try cgroup.freeze(until: Deadline(in: .seconds(60)))
      if way != "cont" {
        let slept = try service.wait { (h) throws(HibernationError) in
          try h.hibernate(
            HibernationRequest(
              target, to: image, restore: way == "hot" || way == "later" ? .lazy : .eager,
              isSealed: way == "sealed", dropsFilePages: way == "pushed"))
        }
        if round > 1 {
          times["\(way): hibernating", default: []].append(
            Double(slept.duration.components.attoseconds) / 1e15)
        }
        if let files = slept.filePages {
          details[way] =
            "\(files.dropped >> 10) KiB of files" + (files.refusal.map { ", \($0)" } ?? "")
        }
        details[way + " image"] = "\(slept.imageLength >> 10) KiB of \(slept.moved >> 10)"
        if let refusal = slept.lazyRefusal { details["refusal"] = refusal }
        usleep(30_000)
      }
      let begun = Clocks.monotonic
      try client.send()
      switch way {
      case "cont": try cgroup.thaw(until: Deadline(in: .seconds(5)))
      case "eager", "sealed", "pushed":
        _ = try service.wait { (h) throws(HibernationError) in
          try h.resume(target, from: RestingImage(path: image))
        }
      default:
        let summary = try service.wait { (h) throws(HibernationError) in
          try h.resume(target, from: RestingImage(path: image, .lazy(learns: true)))
        }
        details["hot"] =
          summary.eagerReason
          ?? "\(summary.restored >> 10) KiB first, \(summary.backgroundFill >> 10) later"
        if round > 1 {
          times["hot: command", default: []].append(
            Double(summary.duration.components.attoseconds) / 1e15)
        }
      }
      do { try client.receive() } catch {
        // This reports the reason if a worker had to be killed.
        try service.awaitFill(of: "victim")
        throw error
      }
      let first = Clocks.monotonic
      try service.awaitFill(of: "victim")
      let filled = Clocks.monotonic
      if round > 1 {
        let name = way == "later" ? "hot" : way
        times[name, default: []].append(Double(first - begun) / 1e6)
        if name == "hot" {
          times["hot: all there", default: []].append(Double(filled - begun) / 1e6)
        }
      }
      usleep(20_000)
      try client.exchange()
    }
  }
  for (name, values) in times.sorted(by: { $0.key < $1.key }) {
    let sorted = values.sorted()
    func at(_ share: Double) -> String {
      let tenths = Int(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] * 100)
      return "\(Double(tenths) / 100)"
    }
    report("\(name): min \(at(0)) median \(at(0.5)) p95 \(at(0.95)) ms (\(values.count))")
  }
  for (name, detail) in details.sorted(by: { $0.key < $1.key }) { report("\(name): \(detail)") }
}
