import Glibc
import Policy
import YAML

extension MappingReader {
  /// Reads `listen:`: an address, a list of addresses, or a mapping from names to addresses.
  func sockets(of worker: String) -> [ListenSocket] {
    let key = "listen"
    let converter = Converter<ListenSocket.Address>.address(from: directory)
    guard let node = node(key) else { return [] }
    guard case .mapping = node, let named = reader(of: node, called: key) else {
      // Such a program doesn't expect `LISTEN_FDNAMES`, so the name of its sockets doesn't matter.
      return oneOrMore(key, of: converter).map { ListenSocket(name: worker, address: $0.value) }
    }
    return named.order.compactMap { name in
      named.sink.allows(name, of: "a socket", at: named.position(ofKey: name))
      return named.read(name, as: converter).map { ListenSocket(name: name, address: $0) }
    }
  }
}

extension Converter where Value == ListenSocket.Address {
  /// An address such as `8080`, `0.0.0.0:8080`, `[::1]:80`, `*:80`, `/run/web.sock`, `@name` or
  /// `udp:127.0.0.1:53`.
  fileprivate static func address(from directory: String) -> Converter {
    .scalar("an address such as `8080`, `0.0.0.0:8080` or `/run/web.sock`") { text in
      if text.hasPrefix("@") || text.hasPrefix("/") || text.hasPrefix("./") {
        return unix(text, from: directory)
      }
      if text.hasPrefix("unix:") { return unix(String(text.dropFirst(5)), from: directory) }
      let isUDP = text.hasPrefix("udp:")
      let address = isUDP || text.hasPrefix("tcp:") ? String(text.dropFirst(4)) : text
      return hostAndPort(address).map { host, port in
        isUDP ? .udp(host: host, port: port) : .tcp(host: host, port: port)
      }
    }
  }

  private static func unix(_ path: String, from directory: String) -> Result<Value, Problem> {
    let path = path.hasPrefix("@") ? path : FilePaths.resolve(path, from: directory)
    guard path.utf8.count > 1, !path.contains("\0") else { return .failure(.wrongKind) }
    return path.utf8.count <= 107
      ? .success(.unix(path))
      : .problem("is \(path.utf8.count) bytes long; a socket's path has at most 107")
  }

  private static func hostAndPort(_ text: String) -> Result<(String, UInt16), Problem> {
    var host = "127.0.0.1"
    var port = Substring(text)
    if let colon = text.lastIndex(of: ":") {
      host = String(text[..<colon])
      port = text[colon...].dropFirst()
    }
    guard let number = UInt16(port), number > 0, port.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
    else { return .failure(.wrongKind) }
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host == "*" { host = "0.0.0.0" }
    if host == "localhost" { host = "127.0.0.1" }
    guard isNumeric(host) else {
      return .problem(
        "can't be at `\(shortened(host))`: a socket is bound to a numeric address",
        suggestion: "write `127.0.0.1:\(number)`, or `*:\(number)` for all addresses")
    }
    return .success((host, number))
  }

  private static func isNumeric(_ host: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
  }
}
