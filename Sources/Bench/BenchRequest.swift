import Control
import Glibc
import Linux

// The request. Its answer shows that the program works again.

extension BenchSubject {
  /// Gives the order to wake, and measures the time until the first byte of the response, in ns.
  /// With a command the time ends when it succeeds, and without a request when the order is
  /// complete.
  ///
  /// An HTTP request is sent before the order, and waits for the program.
  func timeFromOrder(isAsleep: Bool = true, _ give: () throws -> WakeOrder) throws -> Int64 {
    let deadline = Deadline(in: options.timeout)
    switch options.request {
    case .http:
      guard let connection else { throw BenchError.failed("no connection") }
      try connection.ask()
      if isAsleep { try connection.checkSilence() }
      let start = Clocks.monotonic
      let order = try give()
      let moment = try connection.answer(to: order, until: deadline)
      try order.finish()
      return moment - start
    case .command(let text):
      let start = Clocks.monotonic
      let order = try give()
      while try !succeeds(text, until: deadline) {
        if let failure = order.failure { throw failure }
        if deadline.hasPassed {
          throw BenchError.program("`\(escaped(text))` did not succeed in time")
        }
        try interruptions.pause(.milliseconds(1))
      }
      let moment = Clocks.monotonic
      try order.finish()
      return moment - start
    case nil:
      let start = Clocks.monotonic
      try give().finish()
      return Clocks.monotonic - start
    }
  }

  /// Sends some requests that aren't measured: the first ones after a launch are slower.
  func warmUp() throws {
    for _ in 0..<3 {
      _ = try timeFromOrder(isAsleep: false) { try WakeOrder.performed {} }
    }
  }

  /// Runs a shell command of the user, without input and output, and returns whether it succeeded.
  func succeeds(_ text: String, until deadline: Deadline) throws -> Bool {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let shell = try spawn(
      SpawnRequest(
        path: "/bin/sh", arguments: ["sh", "-c", text], environment: options.environment,
        directory: options.directory, input: null.raw, output: null.raw, error: null.raw))
    let ended = Result {
      try interruptions.wait(for: [shell.pidfd.raw], until: deadline) != nil
    }
    // The shell leads its own session, so its group has all processes that it started and left.
    sendSignal(SIGKILL, to: -shell.pid)
    let status = waitForChild(shell.pid)
    if try !ended.get() { return false }
    return status == 0
  }
}
