import Linux
import Policy

/// The reason why a worker can't be asked to free memory.
public enum ShedRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  case notCaught(signal: Int32)
  case noListener
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .notCaught(let signal):
      "not asked to free memory: none of its processes handles \(Signals.text(signal)), "
        + "which would end them"
    case .noListener:
      "not asked to free memory: none of its processes watches MEMORY_PRESSURE_WATCH"
    case .failed(let error): "not asked to free memory: \(error)"
    }
  }
}

extension WorkerProcess {
  /// Asks the worker to free memory by a signal. It is only sent to processes that handle it: an
  /// unhandled signal ends its receiver.
  ///
  /// - Parameter tree: the worker's processes. If it is nil, they are read from /proc.
  public func requestMemory(by signal: Int32, in tree: ProcessTree?) throws(ShedRefusal) {
    let count: Int
    do throws(SystemCallError) {
      let all = if let tree { tree } else { try self.tree() }
      count = try all.receiving(signal).signalAll(signal)
    } catch { throw .failed(error) }
    if count == 0 { throw .notCaught(signal: signal) }
  }
}

extension PressureWatch {
  /// Asks every client to free memory.
  public func requestMemory() throws(ShedRefusal) {
    let count: Int
    do throws(SystemCallError) { count = try notifyAll() } catch { throw .failed(error) }
    if count == 0 { throw .noListener }
  }
}
