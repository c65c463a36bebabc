import Linux

/// A datagram by which a worker changes its file descriptor store (sd_notify(3)).
public enum StoreRequest: Sendable {
  /// `FDSTORE=1`. `isPolled` is false if the datagram contains `FDPOLL=0`.
  case store([Descriptor], name: String, isPolled: Bool)
  /// `FDSTOREREMOVE=1`
  case remove(name: String)

  /// The name of descriptors without `FDNAME=`. systemd uses the same.
  static let usualName = "stored"

  /// Returns nil if the datagram is no such request. The caller drops descriptors that come with
  /// it.
  init?(_ datagram: some Collection<UInt8>, passed: [Descriptor]) {
    var fields: [String: String] = [:]
    for line in datagram.split(separator: UInt8(ascii: "\n")).prefix(NotifyMessage.maxFields) {
      let text = String(decoding: line.prefix(400), as: UTF8.self)
      guard let equals = text.firstIndex(of: "=") else { continue }
      fields[String(text[..<equals])] = String(text[text.index(after: equals)...])
    }
    let name = fields["FDNAME"].flatMap { Self.isName($0) ? $0 : nil }
    if fields["FDSTOREREMOVE"] == "1" {
      guard let name else { return nil }
      self = .remove(name: name)
    } else if fields["FDSTORE"] == "1", !passed.isEmpty {
      self = .store(passed, name: name ?? Self.usualName, isPolled: fields["FDPOLL"] != "0")
    } else {
      return nil
    }
  }

  /// A name has 1–255 visible ASCII characters, and no colon: `LISTEN_FDNAMES` is a list with
  /// colons.
  static func isName(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
  }
}
