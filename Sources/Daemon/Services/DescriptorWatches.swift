import Linux

/// Descriptors that are watched on the loop. `EventLoop` watches real ones; tests hand in their own.
protocol DescriptorWatches: AnyObject {
  /// `file` and `line` name the handler in the message of `TurnCheck`.
  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping EventLoop.Handler
  ) throws(SystemCallError) -> EventLoop.Token

  func change(
    _ descriptor: Descriptor, _ token: EventLoop.Token, to interest: Epoll.Interest
  ) throws(SystemCallError)

  /// The descriptor must still be open.
  func unwatch(_ descriptor: Descriptor, _ token: EventLoop.Token)
}

extension DescriptorWatches {
  func whenReadable(
    _ descriptor: Descriptor, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) throws(SystemCallError) -> EventLoop.Token {
    try watch(descriptor, .readable, file: file, line: line) { _ in action() }
  }
}

extension EventLoop: DescriptorWatches {}
