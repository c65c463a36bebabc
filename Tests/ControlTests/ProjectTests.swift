import Control
import Linux
import TestSupport
import Testing

@Suite("Projects") struct ProjectTests {
  @Test("A directory's project is the nearest dormouse.yaml upwards, by its real path")
  func upwards() throws {
    let scratch = try Scratch()
    let root = try resolvedPath(scratch.path)
    for directory in ["shop", "shop/src", "shop/src/deep", "shop/inner"] {
      try makeDirectory("\(root)/\(directory)", mode: 0o700)
    }
    #expect(Project.find(from: "\(root)/shop/src") == nil)
    try scratch.write("shop/dormouse.yaml", "")
    try scratch.write("shop/inner/dormouse.yml", "")
    let shop = try #require(Project.find(from: "\(root)/shop/src/deep"))
    #expect(shop.directory == "\(root)/shop" && shop.name == "shop")
    #expect(shop.configuration == "\(root)/shop/dormouse.yaml")
    #expect(Project.find(from: "\(root)/shop") == shop)
    let inner = try #require(Project.find(from: "\(root)/shop/inner"))
    #expect(inner.configuration == "\(root)/shop/inner/dormouse.yml" && inner.id != shop.id)
    #expect(Project.find(from: "\(root)/missing") == nil)
  }

  @Test("Projects of one name have different sockets, and each socket's path is short and safe")
  func ids() {
    let one = Project(directory: "/home/a/shop")
    let other = Project(directory: "/home/b/shop")
    #expect(one.name == other.name && one.id != other.id)
    #expect(one.id == Project(directory: "/home/a/shop").id && one.id.hasPrefix("shop-"))
    let odd = Project(directory: "/x/" + String(repeating: "ü. /$", count: 60))
    #expect(odd.id.utf8.count <= 33 && odd.id.allSatisfy { $0.isASCII && $0 != "/" && $0 != "." })
    #expect(Project(directory: "/").id.hasPrefix("root-"))
  }
}
