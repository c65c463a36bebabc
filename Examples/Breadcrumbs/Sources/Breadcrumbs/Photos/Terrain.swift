/// The ridges of a landscape, one behind the other. Each has the row at which it begins, for each
/// column.
struct Terrain {
  /// The ridges. Ridge 0 is the farthest.
  private(set) var ridges: [[Float]] = []
  private let width: Int
  private let height: Int
  private let noise: Noise

  init(_ scene: Scene, seed: UInt32, width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    noise = Noise(seed: seed)
    let count = 5
    for index in 0..<count {
      // The viewer stands on the last ridge. It is beneath the water, if there is any.
      let isNearest = index == count - 1
      let depth = Float(index) / Float(count - 1)
      let foot = scene.water.map { isNearest ? max(0.9, $0) : $0 - 0.015 } ?? mix(0.55, 0.9, depth)
      ridges.append(ridge(index, depth: depth, foot: foot, scene: scene, isNearest: isNearest))
      if scene.trees, index >= count - 3, scene.water == nil || isNearest || index == count - 2 {
        plantTrees(on: index, depth: depth)
      }
    }
  }

  private func ridge(
    _ index: Int, depth: Float, foot: Float, scene: Scene, isNearest: Bool
  ) -> [Float] {
    let shape: (amplitude: Float, frequency: Float, octaves: Int, ridged: Bool)
    switch scene.ground {
    case .hills: shape = (0.16, mix(2.2, 3.2, depth), 4, false)
    case .peaks: shape = (mix(0.5, 0.14, depth), mix(2.0, 3.5, depth), 7, index < 3)
    case .dunes: shape = (0.15, mix(1.1, 1.9, depth), 2, true)
    }
    let amplitude = isNearest ? min(shape.amplitude, 0.1) : shape.amplitude
    // Across water, nearer shores are lower, so that each one is visible.
    let lowering = scene.water == nil ? 1 : mix(1, 0.45, depth)
    return (0..<width).map { column in
      let x = Float(column) / Float(width) * shape.frequency + Float(index) * 31.7
      let rise = noise.layered(
        x, Float(index) * 7.1, octaves: shape.octaves, ridged: shape.ridged)
      return (foot + 0.05 - amplitude * lowering * rise * 1.35) * Float(height)
    }
  }

  /// Adds conifers: each is a jagged triangle, cut out of what is behind it.
  private mutating func plantTrees(on index: Int, depth: Float) {
    let size = Float(height) * mix(0.012, 0.11, depth * depth)
    let spacing = max(2, Int(size * 0.42))
    for slot in 0..<(width / spacing + 1) {
      let chance = noise.value(slot, 900 + index)
      // The trees are in groups, with clearings between them.
      let grove = noise.smooth(Float(slot * spacing) / Float(width) * 7, Float(index) * 3.3)
      guard chance < grove * 1.3 - 0.2 else { continue }
      let center = slot * spacing + Int(chance * Float(spacing))
      let tall = size * (0.5 + 0.8 * noise.value(slot, 950 + index))
      let half = max(1, Int(tall * 0.2))
      let base = ridges[index][min(width - 1, center)]
      for column in max(0, center - half)..<max(0, min(width, center + half)) {
        let out = abs(Float(column - center)) / Float(half)
        let jag = (noise.value(column, slot) - 0.5) * 0.16
        let top = base - tall * (1 - out + jag * out * 2)
        ridges[index][column] = min(ridges[index][column], top)
      }
    }
  }
}
