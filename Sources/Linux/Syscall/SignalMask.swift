import Glibc

/// The blocked signals of a thread, saved to be restored in the same thread.
public struct SignalMask {
  private var blocked = sigset_t()

  /// The calling thread's mask.
  public static var current: SignalMask {
    var mask = SignalMask()
    pthread_sigmask(SIG_BLOCK, nil, &mask.blocked)
    return mask
  }

  /// Blocks additional signals in the calling thread.
  ///
  /// - Returns: the mask as it was before.
  public static func blocking(_ signals: [Int32]) -> SignalMask {
    var (mask, added) = (SignalMask(), sigset_t())
    sigemptyset(&added)
    for signal in signals { sigaddset(&added, signal) }
    pthread_sigmask(SIG_BLOCK, &added, &mask.blocked)
    return mask
  }

  /// Restores the mask in the calling thread.
  public func restore() {
    var blocked = blocked
    pthread_sigmask(SIG_SETMASK, &blocked, nil)
  }
}
