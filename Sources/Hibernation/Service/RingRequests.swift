extension Eligibility {
  /// Returns the reason why the pages of a process with this ring can't be moved, from the ring's
  /// fdinfo, or `nil` if they can. If the kernel doesn't show enough, they can't: data would be
  /// lost silently.
  static func ringObstacle(_ info: String) -> String? {
    var fields: [Substring: Int] = [:]
    var pollEntries = 0
    var inPollList = false
    for line in info.split(separator: "\n") {
      if inPollList, line.hasPrefix(" ") { pollEntries += 1 }
      guard let colon = line.firstIndex(of: ":"), !line.hasPrefix(" ") else { continue }
      inPollList = line[..<colon] == "PollList"
      fields[line[..<colon]] = Int(
        line[line.index(after: colon)...].drop { $0 == "\t" || $0 == " " })
    }
    guard let buffers = fields["UserBufs"], let submitted = fields["SqTail"],
      let taken = fields["SqHead"], let completed = fields["CqTail"], let seen = fields["CqHead"]
    else { return "uses io_uring, and this kernel does not show its requests" }
    if buffers > 0 { return "has \(buffers) io_uring buffers registered with the kernel" }
    if submitted != taken || completed != seen || pollEntries > 0 {
      return "has io_uring requests in flight"
    }
    // Each request has one answer. A ring whose requests get none or several can't be distinguished
    // from one whose requests are with the kernel's threads.
    if UInt32(truncatingIfNeeded: taken) != UInt32(truncatingIfNeeded: completed) {
      return "has io_uring requests in flight: \(taken) submitted, \(completed) completed"
    }
    return nil
  }
}
