import CLinux
import Glibc
import Hibernation
import Linux

func trim(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count == 4, let pid = Int32(arguments[0]) else { throw Usage() }
  let mechanism = TrimSummary.Mechanism(rawValue: arguments[1])
  let target = HibernationTarget(
    name: "victim", root: try ProcessIdentity.current(of: pid), cgroup: try openGroup(arguments[2]))
  let began = Clocks.monotonic
  let summary = try HibernationService().wait { (h) throws(HibernationError) in
    guard let mechanism else { return try h.fill(target) }
    h.trimMechanisms = [mechanism]
    return try h.trim(
      TrimRequest(HibernationRequest(target, to: arguments[3] + ".image"), record: arguments[3]))
  }
  let took = (Clocks.monotonic - began) / 1_000_000
  let stop = summary.stoppedFor.components.attoseconds / 1_000_000_000_000
  report(
    "before \(summary.residentBefore >> 10) after \(summary.residentAfter >> 10) "
      + "swapped \(summary.swapped >> 10) stop \(stop) took \(took)")
}

/// Trims the worker by borrowed threads. Returns the number of bytes that left RAM.
func trim(
  _ target: HibernationTarget, record: String, by service: HibernationService
) throws -> Int64 {
  let summary = try service.wait { (h) throws(HibernationError) in
    h.trimMechanisms = [.borrowedThread]
    return try h.trim(
      TrimRequest(HibernationRequest(target, to: record + ".image"), record: record))
  }
  return summary.residentBefore - summary.residentAfter
}

/// Trims the worker by userfaultfd. Returns the number of bytes that are in the image only.
func trim(
  _ target: HibernationTarget, toImage image: String, by service: HibernationService
) throws -> UInt64 {
  let summary = try service.wait { (h) throws(HibernationError) in
    try h.trim(
      TrimRequest(
        HibernationRequest(target, to: image), record: image + ".trim", mechanism: .userfaultfd))
  }
  if getenv("DORMOUSE_COUNTS") != nil { try countUnread(in: "/proc/\(target.root.pid)/fd/3") }
  return summary.missing?.bytes ?? 0
}

/// Counts the bytes in a pipe from now on, as the daemon does for a moment.
private func countUnread(in path: String) throws {
  let pipe = try Descriptor.open(path, O_RDONLY | O_NONBLOCK)
  _ = Thread.start(name: "count") { while clinux_unread_bytes(pipe.raw) >= 0 {} }
}

func repair(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count == 3, let pid = Int32(arguments[0]), let time = UInt64(arguments[1]) else {
    throw Usage()
  }
  try Hibernator.repairTrim(
    record: arguments[2], of: ProcessIdentity(pid: pid, startTime: time))
  report("done 0")
}

func recover(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count == 4, let pid = Int32(arguments[0]), let time = UInt64(arguments[1]) else {
    throw Usage()
  }
  let target = HibernationTarget(
    name: "victim", root: ProcessIdentity(pid: pid, startTime: time), session: pid,
    cgroup: try openGroup(arguments[2]))
  let summary = try HibernationService().wait { (h) throws(HibernationError) in
    try h.recover(target, from: arguments[3])
  }
  report("done \(summary.restored)")
}

/// Runs the standby pager.
///
/// - Parameter lock: the file that a daemon would keep locked; `-`: none.
func standBy(_ lock: String?) {
  StandbyPager.run(input: Descriptor(owning: 0), lock: lock == "-" ? nil : lock) { report($0) }
}

/// Starts a standby pager.
func startStandby(_ lock: String) throws -> StandbyPagerConnection {
  let deadline = Deadline(in: .seconds(60))
  while true {
    do { return try StandbyPagerConnection(command: [executablePath(), "pager", lock]) } catch {
      // On a busy machine, a process doesn't always start within the limit, which is 1 s.
      if deadline.hasPassed { throw error }
    }
  }
}
