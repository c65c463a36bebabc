/// The density of clouds. It is calculated for one point in sixteen, and interpolated between them.
struct Clouds {
  private static let step = 4
  private let columns: Int
  private let cover: [Float]

  init(density: Float, seed: UInt32, width: Int, height: Int) {
    let noise = Noise(seed: seed ^ 0x5eed)
    let columns = width / Self.step + 2
    let rows = height / Self.step + 2
    self.columns = columns
    guard density > 0 else {
      cover = []
      return
    }
    cover = (0..<(columns * rows)).map { index in
      let x = Float(index % columns) / Float(columns)
      let y = Float(index / columns) / Float(rows)
      // Clouds are flat, and flatter and closer together towards the horizon.
      let nearness = 1 / (0.35 + max(0, 0.75 - y))
      let shape = noise.layered(x * 4 * nearness.squareRoot(), y * 11 * nearness, octaves: 5)
      return max(0, min(1, (shape - 0.74 + density * 0.36) * 4.2))
    }
  }

  func cover(_ column: Int, _ row: Int) -> Float {
    guard !cover.isEmpty else { return 0 }
    let (x, y) = (column / Self.step, row / Self.step)
    let right = Float(column % Self.step) / Float(Self.step)
    let down = Float(row % Self.step) / Float(Self.step)
    let at = y * columns + x
    let upper = mix(cover[at], cover[at + 1], right)
    let lower = mix(cover[at + columns], cover[at + columns + 1], right)
    return mix(upper, lower, down)
  }
}
