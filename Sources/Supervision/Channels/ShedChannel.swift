import Linux

/// How a worker is asked to free memory.
public enum ShedChannel: Hashable, Sendable {
  /// The signal is only sent to processes that handle it: an unhandled signal ends its receiver.
  case signal(Int32)
  /// The arguments of a program that makes the worker free memory (`redis-cli memory purge`).
  case command([String])
  /// A byte to the clients of the worker's `PressureWatch`.
  case notify
}

/// The reason why a worker can't be asked to free memory.
public enum ShedRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  case notCaught(signal: Int32)
  case noListener
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .notCaught(let signal):
      "not asked to free memory: none of its processes handles \(SignalName.text(signal)), "
        + "which would end them"
    case .noListener:
      "not asked to free memory: none of its processes watches MEMORY_PRESSURE_WATCH"
    case .failed(let error): "not asked to free memory: \(error)"
    }
  }
}

/// One request to free memory, until its command has ended. It belongs to the event loop's thread.
public final class ShedRequestRun {
  public let channel: ShedChannel
  /// The number of processes or connections that were asked. It is 1 for a command.
  public let askedCount: Int
  /// The program of a `command` channel; nil for other channels.
  public let command: SideProgram?

  private init(channel: ShedChannel, askedCount: Int, command: SideProgram? = nil) {
    self.channel = channel
    self.askedCount = askedCount
    self.command = command
  }

  /// Asks the worker to free memory.
  ///
  /// - Parameters:
  ///   - watch: the worker's pressure watch. It is needed for `notify`.
  ///   - tree: the worker's processes, for `signal`. If it is nil, they are read from /proc.
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
      if asked == 0 { throw .noListener }
      return ShedRequestRun(channel: channel, askedCount: asked)
    case .command(let arguments):
      // The caller learns later whether the program could be started.
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
