/// The ten views of the journey, one for each entry.
extension Scene {
  static let all: [Scene] = [
    // 1: the lake at first light
    Scene(
      zenith: Color(0x35508c), horizon: Color(0xf5b48a), light: Color(0xffd9a0), lightX: 0.63,
      lightY: 0.47, far: Color(0x8c86a8), near: Color(0x10202a), ground: .hills, clouds: 0.45,
      water: 0.6, trees: true),
    // 2: the pass
    Scene(
      zenith: Color(0x2463ad), horizon: Color(0xbcd8ee), light: Color(0xfff6dc), lightX: 0.2,
      lightY: 0.14, far: Color(0x6f8197), near: Color(0x3c4a2c), ground: .peaks, clouds: 0.5,
      snow: true),
    // 3: vineyards
    Scene(
      zenith: Color(0x4b8fd0), horizon: Color(0xf3e6bd), light: Color(0xfff2c4), lightX: 0.78,
      lightY: 0.22, far: Color(0x8fa383), near: Color(0x4f6a1e), ground: .hills, clouds: 0.62,
      trees: false),
    // 4: the sea in the evening
    Scene(
      zenith: Color(0x41357a), horizon: Color(0xff7d4a), light: Color(0xffd27a), lightX: 0.42,
      lightY: 0.52, disc: 0.06, far: Color(0x7a4a5c), near: Color(0x1c1018), ground: .hills,
      clouds: 0.55, water: 0.58),
    // 5: the desert
    Scene(
      zenith: Color(0x2f79bf), horizon: Color(0xf2dcb2), light: Color(0xfff0c8), lightX: 0.84,
      lightY: 0.3, far: Color(0xd9a56a), near: Color(0xb96a2c), ground: .dunes, clouds: 0),
    // 6: the ferry in the rain
    Scene(
      zenith: Color(0x59656f), horizon: Color(0xaab4b8), light: Color(0xd8dcd8), lightX: 0.5,
      lightY: 0.2, disc: 0, far: Color(0x87949a), near: Color(0x20302f), ground: .peaks,
      clouds: 0.95, water: 0.66),
    // 7: the forest
    Scene(
      zenith: Color(0x6b9fb0), horizon: Color(0xe6ead0), light: Color(0xfff3c0), lightX: 0.3,
      lightY: 0.3, far: Color(0x8ba79a), near: Color(0x0e1f14), ground: .hills, clouds: 0.3,
      trees: true),
    // 8: the full moon
    Scene(
      zenith: Color(0x060b1e), horizon: Color(0x24375c), light: Color(0xe8eefc), lightX: 0.7,
      lightY: 0.2, disc: 0.045, far: Color(0x202c48), near: Color(0x04070e), ground: .peaks,
      clouds: 0.3, water: 0.64, trees: true, stars: true),
    // 9: northern lights
    Scene(
      zenith: Color(0x030816), horizon: Color(0x123040), light: Color(0x9fd8c8), lightX: 0.5,
      lightY: 0.55, disc: 0, far: Color(0x52687c), near: Color(0x7f93a6), ground: .peaks,
      clouds: 0, snow: true, stars: true, aurora: true),
    // 10: home, in the morning
    Scene(
      zenith: Color(0x6f7fc0), horizon: Color(0xffd0c0), light: Color(0xfff0d8), lightX: 0.25,
      lightY: 0.42, far: Color(0xa894b8), near: Color(0x2f4030), ground: .hills, clouds: 0.5,
      trees: true),
  ]
}
