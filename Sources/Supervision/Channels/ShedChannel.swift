import Glibc
import Linux

/// How a worker is asked to free memory.
public enum ShedChannel: Hashable, Sendable {
  /// Only ever sent to processes that handle it: an unhandled signal ends its receiver.
  case signal(Int32)
  /// Argv of a program that makes the worker free memory (`redis-cli memory purge`).
  case command([String])
  /// The listeners of its `PressureWatch`.
  case notify
}

/// Why a worker can't be asked.
public enum ShedRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  case notCaught(signal: Int32)
  case nobodyListens
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .notCaught(let signal):
      "not asked to free memory: none of its processes handles \(SignalName.text(signal)), "
        + "which would end them"
    case .nobodyListens:
      "not asked to free memory: none of its processes watches MEMORY_PRESSURE_WATCH"
    case .failed(let error): "not asked to free memory: \(error)"
    }
  }
}

/// One request to free memory, from the request to the end of its command. Belongs to the event loop's thread.
public final class ShedRequestRun {
  public let channel: ShedChannel
  /// Processes or connections that were asked; 1 for a command.
  public let askedCount: Int
  /// nil: another channel.
  public let command: SideProgram?

  private init(channel: ShedChannel, askedCount: Int, command: SideProgram? = nil) {
    self.channel = channel
    self.askedCount = askedCount
    self.command = command
  }

  /// `watch`: the worker's, for `notify`. `tree`: its processes, where they are known, for `signal`.
  public static func start(
    _ channel: ShedChannel, worker: WorkerProcess, watch: PressureWatch? = nil,
    tree: ProcessTree? = nil
  ) throws(ShedRefusal) -> ShedRequestRun {
    switch channel {
    case .signal(let signal):
      let asked = try asking { () throws(SystemCallError) in
        let all = if let tree { tree } else { try worker.tree() }
        return try all.receiving(signal).signalAll(signal)
      }
      if asked == 0 { throw .notCaught(signal: signal) }
      return ShedRequestRun(channel: channel, askedCount: asked)
    case .notify:
      let asked = try asking { () throws(SystemCallError) in try watch?.notifyAll() ?? 0 }
      if asked == 0 { throw .nobodyListens }
      return ShedRequestRun(channel: channel, askedCount: asked)
    case .command(let arguments):
      // Whether it can be started is known later.
      return ShedRequestRun(
        channel: channel, askedCount: 1, command: worker.runBeside(arguments, as: "shed command"))
    }
  }

  private static func asking(
    _ body: () throws(SystemCallError) -> Int
  ) throws(ShedRefusal) -> Int {
    do throws(SystemCallError) { return try body() } catch { throw .failed(error) }
  }
}
