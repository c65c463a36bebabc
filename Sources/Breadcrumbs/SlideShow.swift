/// One photo after the other. Told to leak, it does what the talk's did: it forgets to let go of the
/// picture before, 4 bytes a pixel.
struct SlideShow {
  /// The entry whose photo is shown; `nil`: it doesn't run.
  var place: Int?
  var leaks = false
  private var shown: Bitmap?
  private var leaked: [Bitmap] = []

  /// Pictures in memory.
  var held: Int { leaked.count + (shown == nil ? 0 : 1) }

  mutating func begin() { place = 1 }

  /// Round and round.
  mutating func advance(of count: Int) { place = place.map { $0 % count + 1 } }

  mutating func stop() {
    place = nil
    forgetShown()
  }

  mutating func show(_ bitmap: Bitmap, keeps: Bool) {
    if keeps, let shown { leaked.append(shown) }
    shown = bitmap
  }

  /// All of it can be decoded again.
  mutating func forgetShown() {
    shown = nil
    leaked = []
  }
}
