import Linux

/// Watches descriptors on the event loop. `EventLoop` watches real ones; tests have a fake. Belongs
/// to the loop's thread.
package protocol DescriptorWatches: AnyObject {
  /// Calls the handler each time the descriptor is ready. `file` and `line` name the handler in the
  /// message of `TurnCheck`.
  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping (Epoll.Interest) -> Void
  ) throws(SystemCallError) -> LoopToken

  func change(
    _ descriptor: Descriptor, _ token: LoopToken, to interest: Epoll.Interest
  ) throws(SystemCallError)

  /// Ends the watch. The descriptor must still be open.
  func unwatch(_ descriptor: Descriptor, _ token: LoopToken)
}

extension DescriptorWatches {
  package func whenReadable(
    _ descriptor: Descriptor, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) throws(SystemCallError) -> LoopToken {
    try watch(descriptor, .readable, file: file, line: line) { _ in action() }
  }
}

extension EventLoop: DescriptorWatches {}
