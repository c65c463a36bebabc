/// The rule for a worker's name: the same as in the configuration, because it becomes a file's name.
enum WorkerName {
  static func problem(with name: String) -> String? {
    let allowed = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    let first = name.utf8.first
    guard allowed, (1...64).contains(name.utf8.count), first != UInt8(ascii: "."),
      first != UInt8(ascii: "-")
    else {
      return "use 1 to 64 letters, digits, `-`, `_` and `.`; `.` and `-` can't come first"
    }
    return nil
  }
}
