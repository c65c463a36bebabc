/// One mount, a line of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
struct Mount: Hashable {
  /// The directory of the file system that is mounted here.
  var root: String
  var point: String
  var type: String
  /// The options of the file system itself; for cgroups of version 1, they include the controllers.
  var options: [String]

  init?(parsing line: some StringProtocol) {
    let fields = line.split(separator: " ")
    // Optional fields end with a single "-". The type follows it.
    guard fields.count >= 9, let dash = fields.dropFirst(6).firstIndex(of: "-"),
      dash + 1 < fields.count
    else { return nil }
    root = Self.unescape(fields[3])
    point = Self.unescape(fields[4])
    type = String(fields[dash + 1])
    options =
      dash + 3 < fields.count ? fields[dash + 3].split(separator: ",").map { String($0) } : []
  }

  /// Decodes blanks, tabs, newlines and backslashes, which are `\` and three octal digits.
  static func unescape(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "\\"), index + 3 < bytes.count,
        let byte: UInt8 = bytes[(index + 1)...(index + 3)].number(radix: 8)
      {
        result.append(byte)
        index += 4
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  static func all() throws(SystemCallError) -> [Mount] {
    try readText("/proc/self/mountinfo").split(separator: "\n").compactMap {
      Mount(parsing: $0)
    }
  }
}
