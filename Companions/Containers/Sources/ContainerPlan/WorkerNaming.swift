import Policy

/// Makes names of workers from those of containers.
enum WorkerNaming {
  private static let longest = NameRule.longest

  /// A container's own name. For a pod's container it is `NAMESPACE.POD.CONTAINER`. If that is too
  /// long, the middle of the pod's name is left out: the namespace and the container stay readable,
  /// and the end differs from that of other pods.
  static func natural(_ container: Container) -> String {
    guard let member = container.member, container.name.utf8.count > longest else {
      return container.name
    }
    let room = longest - member.namespace.utf8.count - member.container.utf8.count - 2
    // No useful part of the pod's name would fit.
    guard room >= 8 else { return container.name }
    // The tail is as long as a Deployment's `-7f9c4d5b6-x8kzq`.
    let tail = min(16, room / 2)
    var head = member.pod.utf8.prefix(room - 1 - tail)
    while let last = head.last, isSeparator(last) { head.removeLast() }
    let end = member.pod.utf8.suffix(tail).drop(while: isSeparator)
    let pod = Array(head) + [UInt8(ascii: "-")] + Array(end)
    return "\(member.namespace).\(String(decoding: pod, as: UTF8.self)).\(member.container)"
  }

  private static func isSeparator(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }

  /// The nearest valid name.
  static func valid(_ name: String, _ id: String) -> String {
    var bytes = name.utf8.map { NameRule.allows($0) ? $0 : UInt8(ascii: "-") }
    bytes = Array(bytes.drop { !NameRule.canBeFirst($0) }.prefix(longest))
    return bytes.isEmpty
      ? with(suffix: id, of: "container") : String(decoding: bytes, as: UTF8.self)
  }

  /// The name, or a name such as `web-3f2a8b` if another worker has that one.
  static func unique(_ name: String, _ id: String, taken: Set<String>) -> String {
    if !taken.contains(name) { return name }
    for length in [6, 12, 24] {
      let longer = with(suffix: id, of: name, length)
      if !taken.contains(longer) { return longer }
    }
    var number = 2
    while taken.contains("\(name.prefix(50))-\(number)") { number += 1 }
    return "\(name.prefix(50))-\(number)"
  }

  private static func with(suffix id: String, of name: String, _ length: Int = 12) -> String {
    let suffix = id.utf8.filter { NameRule.allows($0) }.prefix(length)
    let head = name.utf8.prefix(longest - 1 - length)
    return String(decoding: head, as: UTF8.self) + "-" + String(decoding: suffix, as: UTF8.self)
  }
}
