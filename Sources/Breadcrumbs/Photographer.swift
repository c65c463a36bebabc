/// Takes the photos, 2048 × 1536.
enum Photographer {
  static func photo(_ number: Int) throws(JPEGError) -> [UInt8] {
    let scenes = Scene.all
    let scene = scenes[(number - 1) % scenes.count]
    var doublings = 0
    // Without optimization a picture would take half a minute: a small one is enlarged by the codec.
    #if DEBUG
      doublings = 3
    #endif
    var bitmap = Landscape.bitmap(
      scene, seed: UInt32(number), width: 2048 >> doublings, height: 1536 >> doublings)
    for _ in 0..<doublings {
      bitmap = try JPEG.decode(JPEG.encode(bitmap, quality: 95), eighths: 16)
    }
    return try JPEG.encode(bitmap, quality: 85)
  }
}
