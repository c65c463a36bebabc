import Glibc

/// A generated photo: sky, light, ridges, water. So the example needs no files, and is the same on
/// every machine.
struct Landscape {
  private let scene: Scene
  private let width: Int
  private let height: Int
  private let noise: Noise
  private let terrain: Terrain
  /// For each ridge, the share of the light that its slope catches in each column.
  private let slopes: [[Float]]
  private let clouds: Clouds

  static func bitmap(_ scene: Scene, seed: UInt32, width: Int, height: Int) -> Bitmap {
    let landscape = Landscape(scene, seed: seed, width: width, height: height)
    return Bitmap(width: width, height: height) { landscape.paint($0) }
  }

  private init(_ scene: Scene, seed: UInt32, width: Int, height: Int) {
    self.scene = scene
    (self.width, self.height) = (width, height)
    noise = Noise(seed: seed)
    terrain = Terrain(scene, seed: seed, width: width, height: height)
    clouds = Clouds(density: scene.clouds, seed: seed, width: width, height: height)
    let side: Float = scene.lightX > 0.5 ? 1 : -1
    let reach = width / (scene.ground == .hills ? 400 : scene.ground == .peaks ? 80 : 200) + 1
    slopes = terrain.ridges.map { ridge in
      (0..<width).map { column in
        let (before, after) = (max(0, column - reach), min(width - 1, column + reach))
        let slope = (ridge[after] - ridge[before]) / Float(after - before)
        return max(-1, min(1, slope * side))
      }
    }
  }

  private func paint(_ pixels: UnsafeMutableBufferPointer<UInt32>) {
    let waterline = scene.water.map { Int($0 * Float(height)) } ?? height
    for row in 0..<min(waterline, height) { paintLand(row, pixels, from: 0) }
    guard waterline < height else { return }
    let nearest = terrain.ridges.count - 1
    for row in waterline..<height {
      paintWater(row, waterline, pixels)
      paintLand(row, pixels, from: nearest)
    }
  }

  /// Paints one row above the water. If `first` isn't 0, only the ridges from `first` on are
  /// painted, and no sky.
  private func paintLand(_ row: Int, _ pixels: UnsafeMutableBufferPointer<UInt32>, from first: Int)
  {
    let y = Float(row)
    let overhead = skyColor(y / Float(height))
    for column in 0..<width {
      var index = terrain.ridges.count - 1
      while index >= first, terrain.ridges[index][column] > y { index -= 1 }
      let bits = noise.bits(column, row)
      let grain = Float(bits & 0xff) * (1.6 / 255) - 0.8
      if index >= first {
        pixels[row * width + column] = ground(index, column, y, bits).pixel(grain: grain * 2.5)
      } else if first == 0 {
        pixels[row * width + column] = sky(overhead, column, row, bits).pixel(grain: grain)
      }
    }
  }

  // MARK: up

  private func skyColor(_ share: Float) -> Color {
    let t = min(1, share / (scene.water ?? 0.62))
    return scene.zenith.mixed(scene.horizon, t * t * (1.6 - 0.6 * t))
  }

  private func sky(_ base: Color, _ column: Int, _ row: Int, _ bits: UInt32) -> Color {
    let dx = (Float(column) - scene.lightX * Float(width)) / Float(height)
    let dy = Float(row) / Float(height) - scene.lightY
    let distance = (dx * dx + dy * dy).squareRoot()
    var color = base
    if scene.stars { color = color.adding(Color(0.9, 0.95, 1), star(column, row)) }
    if scene.aurora { color = color.adding(Color(0.25, 1, 0.55), aurora(column, row)) }
    let glow = 0.014 / (distance * distance + 0.03)
    color = color.adding(scene.light, glow * (scene.stars ? 0.5 : 1))
    let cover = clouds.cover(column, row)
    if cover > 0 {
      let lit = scene.horizon.mixed(scene.light, min(1, 0.35 + glow))
      color = color.mixed(lit, cover * 0.8)
    }
    let edge = (scene.disc - distance) * 400
    if edge > 0 { color = color.mixed(scene.light.scaled(1.15), min(1, edge) * (1 - cover * 0.5)) }
    return color
  }

  private func star(_ column: Int, _ row: Int) -> Float {
    let chance = noise.value(column / 2 + 7000, row / 2)
    return chance > 0.9985 ? (chance - 0.9985) * 600 : 0
  }

  /// The brightness of northern lights: sharp below, and fading upwards.
  private func aurora(_ column: Int, _ row: Int) -> Float {
    let x = Float(column) / Float(width)
    let y = Float(row) / Float(height)
    let edge = 0.34 + 0.16 * (noise.smooth(x * 3.1, 4) - 0.5) + 0.05 * sin(x * 9)
    let above = edge - y
    let fade = above > 0 ? 1 / (1 + above * above * 90) : 1 / (1 + above * above * 4000)
    let rays = 0.45 + 0.55 * noise.smooth(x * 46, y * 1.5)
    return fade * rays * 0.62 * noise.smooth(x * 2.2, 9.5) * 1.5
  }

  // MARK: down

  private func ground(_ index: Int, _ column: Int, _ y: Float, _ bits: UInt32) -> Color {
    let last = Float(terrain.ridges.count - 1)
    let depth = Float(index) / last
    let top = terrain.ridges[index][column]
    let below = (y - top) / Float(height)
    var color = scene.far.mixed(scene.near, depth)
    if scene.snow, isSnow(index, column, y, below, bits) {
      color = Color(0.93, 0.95, 1).mixed(scene.horizon, 0.45 * (1 - depth))
    }
    let relief: Float = scene.ground == .dunes ? 0.34 : 0.5
    // The crest's slope determines the light on the flank beneath it, less and less on the way
    // down.
    let shade = 1 + relief * slopes[index][column] / (1 + below * 9)
    let texture = 0.93 + 0.14 * noise.smooth(Float(column) * 0.06, y * 0.11 + Float(index) * 90)
    color = color.scaled(shade * texture)
    // There is mist in the valleys, and more of it the farther they are.
    let mist = min(1, below * 2.6) * (1 - depth) * 0.75
    return color.mixed(scene.horizon, mist)
  }

  private func isSnow(
    _ index: Int, _ column: Int, _ y: Float, _ below: Float, _ bits: UInt32
  ) -> Bool {
    let line = Float(height) * (scene.stars ? 2 : 0.46)
    let rough = noise.layered(Float(column) * 0.02, y * 0.035, octaves: 3) - 0.5
    return y + rough * Float(height) * 0.16 < line - below * Float(height) * 0.35
  }

  /// Paints a row of water. It reflects what is as far above the line: swaying, darker, and bluer
  /// towards the viewer.
  private func paintWater(
    _ row: Int, _ waterline: Int, _ pixels: UnsafeMutableBufferPointer<UInt32>
  ) {
    let depth = Float(row - waterline) / Float(height - waterline)
    let sway = 1 + depth * 26
    let wave = noise.smooth(Float(row) * 0.45 / (0.35 + depth), 3) - 0.5
    let source = max(0, waterline - 1 - Int(Float(row - waterline) * 1.15 + wave * sway * 0.6))
    let deep = scene.zenith.scaled(0.55)
    for column in 0..<width {
      let ripple = noise.smooth(Float(column) * 0.02 / (0.15 + depth), Float(row) * 0.5) - 0.5
      let from = max(0, min(width - 1, column + Int((wave + ripple * 0.8) * sway)))
      let mirrored = Color(unpacking: pixels[source * width + from])
      var color = mirrored.mixed(deep, 0.22 + 0.3 * depth).scaled(0.94 + ripple * 0.16)
      if ripple > 0.28 { color = color.adding(scene.light, (ripple - 0.28) * 0.9) }
      let grain = Float(noise.bits(column, row) & 0xff) * (1.6 / 255) - 0.8
      pixels[row * width + column] = color.pixel(grain: grain)
    }
  }
}

extension Color {
  fileprivate init(unpacking pixel: UInt32) {
    func channel(_ shift: UInt32) -> Float { Float((pixel >> shift) & 0xff) * (1 / 255) }
    self.init(channel(0), channel(8), channel(16))
  }
}
