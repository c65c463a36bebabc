/// Content that can be made again, and that may be discarded when it isn't in use.
///
/// Code that uses it brackets the use with `beginContentAccess` and `endContentAccess`; as long as the number
/// of the former is larger, it stays. As with Foundation's `NSDiscardableContent`, content begins its life with
/// one access, which its maker ends: until then it can't be discarded.
public protocol DiscardableContent: AnyObject, Sendable {
  /// Keeps the content until `endContentAccess`. False: it was discarded; then there is nothing to end.
  func beginContentAccess() -> Bool
  /// Ends one access. If it was the last one, the content may be discarded from then on.
  func endContentAccess()
  /// Discards the content now, unless it is in use.
  func discardContentIfPossible()
  /// It was discarded, and doesn't come back: make it again.
  var isContentDiscarded: Bool { get }
}

extension DiscardableContent {
  /// Runs `body` while the content is kept; `nil`: it was discarded, and `body` hasn't run.
  public func withContentAccess<Result, Failure: Error>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard beginContentAccess() else { return nil }
    defer { endContentAccess() }
    return try body()
  }
}
