/// Red, green and blue, from 0 to 1, and more while light is added.
struct Color: Hashable, Sendable {
  var red: Float
  var green: Float
  var blue: Float

  init(_ red: Float, _ green: Float, _ blue: Float) {
    (self.red, self.green, self.blue) = (red, green, blue)
  }

  /// Creates a colour from 0xRRGGBB, as on the web.
  init(_ hex: UInt32) {
    func channel(_ shift: UInt32) -> Float { Float((hex >> shift) & 0xff) / 255 }
    self.init(channel(16), channel(8), channel(0))
  }

  func mixed(_ other: Color, _ t: Float) -> Color {
    Color(mix(red, other.red, t), mix(green, other.green, t), mix(blue, other.blue, t))
  }

  func scaled(_ factor: Float) -> Color { Color(red * factor, green * factor, blue * factor) }

  func adding(_ other: Color, _ share: Float) -> Color {
    Color(red + other.red * share, green + other.green * share, blue + other.blue * share)
  }

  /// Returns the pixel. `grain`, in steps of the result, hides the bands of a gradient.
  func pixel(grain: Float) -> UInt32 {
    func channel(_ value: Float) -> UInt32 { UInt32(max(0, min(255, value * 255 + grain))) }
    return channel(red) | channel(green) << 8 | channel(blue) << 16 | 0xff00_0000
  }
}

/// The description of a landscape.
struct Scene: Hashable, Sendable {
  enum Ground: Hashable, Sendable {
    case hills, peaks, dunes
  }

  /// The colour of the sky overhead.
  var zenith: Color
  /// The colour of the sky over the horizon.
  var horizon: Color
  /// The colour of the sun's or the moon's light.
  var light: Color
  /// The position of the light, as shares of the width and the height.
  var lightX: Float
  var lightY: Float
  /// The radius of the disc, as a share of the height. With 0 there is none.
  var disc: Float = 0.035
  /// The colours of the farthest and of the nearest ground.
  var far: Color
  var near: Color
  var ground: Ground = .hills
  /// The share of clouds: 0 is a clear sky, 1 a covered one.
  var clouds: Float = 0.4
  /// The row at which the water begins, as a share of the height from the top; `nil` if there is
  /// none.
  var water: Float?
  var trees = false
  var snow = false
  var stars = false
  var aurora = false
}
