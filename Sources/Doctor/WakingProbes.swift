import Linux
import Supervision

extension Probe {
  static let ofWaking = [wake, latch]

  private static let wake = Probe(
    id: "wake", name: "waking on data",
    lost:
      "Data and connections don't wake a sleeping worker, only a request does. With `foreground: "
      + "{mode: activity}`, and wherever Yama forbids it, workers that have sockets or pipes "
      + "aren't suspended.",
    enable: "Linux 5.6 or later, and the right to trace workers (see `ptrace`); in a container, a "
      + "seccomp profile that permits pidfd_getfd."
  ) { examination in
    let child = try ProbeChild(ProbeChild.echo)
    defer { child.end() }
    guard try child.answers() else { throw ProbeFailure("the shell does not answer") }
    let identity = try ProcessIdentity.current(of: child.pid)
    let tree = try ProcessTree.stopAll(
      root: identity, session: child.pid, until: Deadline(in: .seconds(5)))
    let sources = try WakeSources(of: tree, daemonSockets: [])
    if let refusal = sources.refusals.first { throw refusal }
    try child.send("wake up")
    guard let reason = sources.nextReason() else {
      throw ProbeFailure("data for a stopped shell was not seen at its socket")
    }
    try tree.continueAll()
    guard try child.line() == "wake up" else {
      throw ProbeFailure("the shell did not read what was sent while it was stopped")
    }
    return .works("saw \(reason) for a stopped shell, which then read it")
  }

  private static let latch = Probe(
    id: "latch", name: "detecting short connections",
    lost: "With `foreground: {mode: activity}` a connection of less than 1 s "
      + "doesn't count as activity.",
    enable: "Linux 4.18 or later with CONFIG_AIO, and a larger fs.aio-max-nr where that is used "
      + "up; in a container, a seccomp profile that permits io_setup and io_submit."
  ) { _ in
    let latches = try InputLatches(capacity: 1)
    let latch = latches.add()
    let counter = try EventCounter()
    try latches.arm(latch, at: counter.descriptor)
    counter.signal()
    counter.clear()
    latches.collect()
    guard latch.hasFired else { throw ProbeFailure("a completed poll was not reported") }
    return .works("io_submit of a poll")
  }
}
