/// Gets the events of a worker's life cycle, one after another.
///
/// Each method is optional. The daemon waits for the method to return, as long as its deadline allows
/// (`Worker.deadline`): return when the memory has been freed and the state has been saved. A method that isn't
/// done by the deadline isn't cut off, but the daemon continues without the answer.
///
/// A delegate may be an actor, or bound to one (`@MainActor final class AppDelegate: WorkerDelegate`): its
/// methods run there.
public protocol WorkerDelegate: AnyObject, Sendable {
  /// The worker isn't in use any more: see <doc:InTheBackground>.
  func didEnterBackground() async
  /// The worker is in use.
  func didEnterForeground() async
  /// Free what can be made again. Caches and `@Unloadable` values do this by themselves.
  func didReceiveMemoryWarning(_ warning: MemoryWarning) async
  /// The worker is about to be suspended. There is only a moment: do work that takes time in
  /// `didEnterBackground`.
  func willSuspend() async
  /// It runs again.
  func didResume(_ resumption: Resumption) async
  /// The worker is about to be ended, by SIGTERM first. `reason` is in the daemon's words.
  func willTerminate(reason: String) async
  /// The machine's memory has become scarcer, or less scarce. This isn't a request: caches grow and shrink with
  /// it.
  func pressureChanged(_ level: PressureLevel) async
}

extension WorkerDelegate {
  public func didEnterBackground() async {}
  public func didEnterForeground() async {}
  public func didReceiveMemoryWarning(_ warning: MemoryWarning) async {}
  public func willSuspend() async {}
  public func didResume(_ resumption: Resumption) async {}
  public func willTerminate(reason: String) async {}
  public func pressureChanged(_ level: PressureLevel) async {}
}

extension WorkerEvent {
  func deliver(to delegate: any WorkerDelegate) async {
    switch self {
    case .didEnterBackground: await delegate.didEnterBackground()
    case .didEnterForeground: await delegate.didEnterForeground()
    case .didReceiveMemoryWarning(let warning): await delegate.didReceiveMemoryWarning(warning)
    case .willSuspend: await delegate.willSuspend()
    case .didResume(let resumption): await delegate.didResume(resumption)
    case .willTerminate(let reason): await delegate.willTerminate(reason: reason)
    case .pressureChanged(let level): await delegate.pressureChanged(level)
    }
  }
}
