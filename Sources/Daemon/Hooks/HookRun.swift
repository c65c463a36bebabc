import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// One run of a command of `on:`, from its start to its end. Belongs to the loop's thread.
final class HookRun {
  enum Outcome: Hashable {
    case succeeded
    case failed(String)
    case timedOut
  }

  private let loop: any Timers & DescriptorWatches
  private let ended: (Outcome, String) -> Void
  private var program: FollowedProgram?
  private var output: (descriptor: Descriptor, watch: EventLoop.Token)?
  private let deadline: TimedOperation
  private var text: [UInt8] = []
  private var isCut = false
  private var isLate = false

  /// The number of bytes of output that are kept.
  private static let maxKept = 2048
  /// The number of bytes that are read at most. A command that writes more gets a broken pipe.
  private static let maxRead = 1 << 20
  private var bytesRead = 0
  /// The time between SIGTERM and SIGKILL.
  static let grace = Duration.seconds(2)

  /// - Parameter ended: called once, with the outcome and the output, and never before this
  ///   returns.
  init(
    _ entry: HookQueue.Entry, slot: Int, on loop: any Timers & DescriptorWatches,
    environment: [String: String], socket: String, ended: @escaping (Outcome, String) -> Void
  ) throws(SystemCallError) {
    self.loop = loop
    self.ended = ended
    deadline = TimedOperation(loop)
    let input = try Descriptor.memoryFile("dormouse-event", entry.input)
    let pipe = try Descriptor.pipe()
    var additional = [
      "DORMOUSE_EVENT": entry.subject.event.rawValue, "DORMOUSE_CONTROL_SOCKET": socket,
    ]
    additional["DORMOUSE_WORKER"] = entry.subject.worker
    let program = SideProgram.alone(
      entry.command, about: "command \(slot) of on", in: entry.hooks.directory,
      environment: environment, adding: additional, input: input, output: pipe.writing)
    let watch = try loop.whenReadable(pipe.reading) { [weak self] in self?.read() }
    output = (pipe.reading, watch)
    self.program = FollowedProgram(program, loop) { [weak self] in self?.didEnd() }
    deadline.wait(entry.hooks.timeout) { [weak self] in self?.reachDeadline() }
  }

  deinit { stopReading() }

  /// The pid of the command, which is a child of the daemon that nothing else may reap.
  var pid: Int32? { program?.program.pid }

  // MARK: output

  private func read() {
    guard let output else { return }
    // A readable pipe has data, or is at its end.
    guard let chunk = try? output.descriptor.read(upTo: 4096), !chunk.isEmpty else {
      return stopReading()
    }
    bytesRead += chunk.count
    let room = Self.maxKept - text.count
    text += chunk.prefix(room)
    if chunk.count > room { isCut = true }
    if bytesRead >= Self.maxRead { stopReading() }
  }

  private func stopReading() {
    guard let output else { return }
    loop.unwatch(output.descriptor, output.watch)
    self.output = nil
  }

  /// Reads the last output. A process that the command has left behind may still have the pipe
  /// open; it isn't waited for.
  private func readRemaining() {
    while let output, bytesRead < Self.maxRead,
      // A pipe that can't be polled has nothing to read.
      (try? pollDescriptor(output.descriptor.raw, for: POLLIN, until: Deadline(in: .zero))) == true
    {
      read()
    }
    stopReading()
  }

  // MARK: end

  private func reachDeadline() {
    guard let program else { return }
    if isLate || program.program.pid == nil {
      let hang = program.program.hang
      program.cancel()
      return finish(hang.map { .failed("did not start: \($0)") } ?? .timedOut)
    }
    isLate = true
    program.program.requestEnd()
    deadline.wait(Self.grace) { [weak self] in self?.reachDeadline() }
  }

  private func didEnd() {
    guard let phase = program?.program.phase else { return }
    if isLate { return finish(.timedOut) }
    switch phase {
    case .ended(.exited(0)): finish(.succeeded)
    case .ended(let exit): finish(.failed(ExitStatus(exit).sentence))
    case .failed(let error): finish(.failed("did not start: \(error.reason)"))
    case .preparing, .starting, .running, .cancelled: finish(.failed("did not start"))
    }
  }

  private func finish(_ outcome: Outcome) {
    program = nil
    deadline.cancel()
    readRemaining()
    let decoded = String(decoding: text, as: UTF8.self)
    ended(outcome, isCut ? decoded + " …" : decoded)
  }
}
