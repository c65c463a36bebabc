/// Gets the events of a worker's life cycle, one after another.
///
/// Each method is optional. The daemon waits until the method returns, at most until
/// `Worker.deadline`: return when the memory has been freed and the state has been saved. A method
/// that isn't done by the deadline isn't cancelled, but the daemon continues without the answer.
///
/// A delegate may be an actor, or isolated to one (`@MainActor final class AppDelegate:
/// WorkerDelegate`): its methods run there. Otherwise they run on Swift's thread pool.
public protocol WorkerDelegate: AnyObject, Sendable {
  /// The worker isn't in use any more. Save, and free what can be made again: see
  /// <doc:InTheBackground>.
  func didEnterBackground() async
  /// The worker is in use.
  func didEnterForeground() async
  /// The machine runs short of memory. Free what can be made again. Caches and `@Unloadable` values
  /// free theirs by themselves.
  func didReceiveMemoryWarning(_ warning: MemoryWarning) async
  /// The worker is about to be suspended. There is only a moment: do work that takes time in
  /// `didEnterBackground`.
  func willSuspend() async
  /// The worker runs again after a sleep. `resumption` has the sleep's length and the cause of the
  /// resume.
  func didResume(_ resumption: Resumption) async
  /// The worker is about to be terminated: SIGTERM follows the answer. `reason` is a text of the
  /// daemon, for people.
  ///
  /// A sleeping worker may be terminated without this call.
  func willTerminate(reason: String) async
  /// The machine's pressure level has changed. This isn't a request: caches follow the level by
  /// themselves.
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
