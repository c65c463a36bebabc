import Control
import Glibc
import Linux
import Supervision

extension Probe {
  static let ofWaking = [wake, latch]

  private static let wake = Probe(
    "wake", "waking on data",
    lost: "Nothing that comes for a sleeping worker wakes it, only a verb does; under `foreground: "
      + "{mode: activity}` workers aren't suspended.",
    enable: "Linux 5.6 or later, and the right to trace workers (see `ptrace`); in a container, a "
      + "seccomp profile that permits pidfd_getfd."
  ) { examination in
    let child = try ProbeChild(ProbeChild.echo)
    defer { child.end() }
    guard try child.answers() else { throw ProbeFailure("the shell doesn't answer") }
    let identity = try ProcessIdentity.current(of: child.pid)
    let tree = try ProcessTree.stopAll(
      root: identity, session: child.pid, until: Deadline(in: .seconds(5)))
    let sources = try WakeSources(of: tree, ownChannels: [])
    if let refusal = sources.refusals.first { throw refusal }
    try child.send("wake up")
    guard let why = sources.take() else {
      throw ProbeFailure("a stopped shell was sent something, and its socket didn't tell")
    }
    try tree.continueAll()
    guard try child.line() == "wake up" else {
      throw ProbeFailure("the shell didn't get what was sent while it was stopped")
    }
    return .works("a stopped shell had \(why), seen from here, and read by it")
  }

  private static let latch = Probe(
    "latch", "short connections",
    lost: "Under `foreground: {mode: activity}` a connection that comes and goes within a second "
      + "isn't seen as activity.",
    enable: "Linux 4.18 or later with CONFIG_AIO, and a larger fs.aio-max-nr where that is used "
      + "up; in a container, a seccomp profile that permits io_setup and io_submit."
  ) { _ in
    let latches = try InputLatches(capacity: 1)
    let latch = latches.add()
    let counter = try EventCounter()
    try latches.arm(latch, at: counter.descriptor)
    counter.signal()
    counter.clear()
    latches.take()
    guard latch.hasFired else { throw ProbeFailure("a poll that was answered has forgotten it") }
    return .works("io_submit of a poll")
  }
}
