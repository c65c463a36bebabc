/// Repeatable random numbers: the same seed gives the same picture, on every machine.
struct Noise {
  let seed: UInt32

  /// A number from 0 up to 1 for each point of a grid.
  func value(_ x: Int, _ y: Int) -> Float {
    Float(bits(x, y) >> 8) * (1 / 16_777_216)
  }

  func bits(_ x: Int, _ y: Int) -> UInt32 {
    let column = UInt32(truncatingIfNeeded: x) &* 374_761_393
    let row = UInt32(truncatingIfNeeded: y) &* 668_265_263
    var hash = (column &+ row) ^ (seed &* 2_246_822_519)
    hash = (hash ^ (hash >> 13)) &* 1_274_126_177
    hash = (hash ^ (hash >> 15)) &* 2_246_822_519
    return hash ^ (hash >> 16)
  }

  /// Interpolates between the grid's points: a smooth value from 0 to 1.
  func smooth(_ x: Float, _ y: Float) -> Float {
    let (left, top) = (x.rounded(.down), y.rounded(.down))
    let (column, row) = (Int(left), Int(top))
    let (right, down) = (Self.ease(x - left), Self.ease(y - top))
    let upper = mix(value(column, row), value(column + 1, row), right)
    let lower = mix(value(column, row + 1), value(column + 1, row + 1), right)
    return mix(upper, lower, down)
  }

  /// Adds octaves of smooth noise, each twice as fine and half as strong; from 0 to 1. With
  /// `ridged` the values are folded in the middle, which makes crests.
  func layered(_ x: Float, _ y: Float, octaves: Int, ridged: Bool = false) -> Float {
    var (sum, strength, total, scale): (Float, Float, Float, Float) = (0, 1, 0, 1)
    for octave in 0..<octaves {
      let offset = Float(octave) * 17.3
      var level = smooth(x * scale + offset, y * scale + offset)
      if ridged { level = 1 - abs(2 * level - 1) }
      sum += level * strength
      total += strength
      strength *= 0.5
      scale *= 2
    }
    return sum / total
  }

  private static func ease(_ t: Float) -> Float { t * t * (3 - 2 * t) }
}

/// Interpolates from `a` at 0 to `b` at 1.
func mix(_ a: Float, _ b: Float, _ t: Float) -> Float { a + (b - a) * t }
