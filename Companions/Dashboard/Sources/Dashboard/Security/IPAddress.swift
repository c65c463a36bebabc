import Glibc

/// An IPv4 or IPv6 address. An IPv4 address that is written as an IPv6 one (`::ffff:127.0.0.1`) is
/// IPv4.
struct IPAddress: Hashable, Sendable {
  /// The 4 or 16 bytes, the most significant first.
  let bytes: [UInt8]

  /// The result is nil if `text` isn't an address; it may be a name.
  init?(_ text: String) {
    var four = [UInt8](repeating: 0, count: 4)
    if inet_pton(AF_INET, text, &four) == 1 {
      bytes = four
      return
    }
    var sixteen = [UInt8](repeating: 0, count: 16)
    guard inet_pton(AF_INET6, text, &sixteen) == 1 else { return nil }
    bytes = sixteen.starts(with: Self.mapped) ? Array(sixteen[12...]) : sixteen
  }

  var isIPv6: Bool { bytes.count == 16 }

  var isLoopback: Bool {
    isIPv6 ? bytes == [UInt8](repeating: 0, count: 15) + [1] : bytes[0] == 127
  }

  /// The bytes as an IPv6 address.
  var asIPv6: [UInt8] { isIPv6 ? bytes : Self.mapped + bytes }

  private static let mapped: [UInt8] = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
}

/// One end of a TCP connection.
struct Endpoint: Hashable, Sendable {
  var address: IPAddress
  var port: Int
}
