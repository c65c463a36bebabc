/// Content that can be made again, and that may be discarded while it isn't in use.
///
/// Code that uses the content calls `beginContentAccess` before and `endContentAccess` afterwards.
/// While more accesses have begun than have ended, the content stays. As with Foundation's
/// `NSDiscardableContent`, new content has one access, which its creator ends: until then it can't
/// be discarded.
public protocol DiscardableContent: AnyObject, Sendable {
  /// Begins an access, which keeps the content until `endContentAccess`. The result is false if the
  /// content was discarded; then there is no access to end.
  func beginContentAccess() -> Bool
  /// Ends one access. If it was the last one, the content may be discarded from now on.
  func endContentAccess()
  /// Discards the content now, unless it is in use.
  func discardContentIfPossible()
  /// True if the content was discarded. It doesn't come back: make it again.
  var isContentDiscarded: Bool { get }
}

extension DiscardableContent {
  /// Runs `body` while the content is kept, and returns its result. If the content was discarded,
  /// the result is `nil` and `body` doesn't run.
  public func withContentAccess<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard beginContentAccess() else { return nil }
    defer { endContentAccess() }
    return try body()
  }
}
