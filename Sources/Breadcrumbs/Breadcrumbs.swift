import Glibc
@main struct Breadcrumbs {
  static func main() throws {
    for (i, scene) in Scene.all.enumerated() {
      let b = Landscape.bitmap(scene, seed: UInt32(i + 1), width: 1600, height: 1200)
      let data = try JPEG.encode(b, quality: 85)
      print(i + 1, data.count, b.digest)
      let fd = open("/tmp/crumbs-out/\(i + 1).jpg", O_CREAT | O_WRONLY | O_TRUNC, 0o644)
      _ = data.withUnsafeBytes { write(fd, $0.baseAddress, $0.count) }
      close(fd)
    }
  }
}
