// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "Breadcrumbs",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "dormouse", path: "../..")],
  targets: [
    // `pkgConfig` isn't set: SwiftPM would warn about a missing .pc file in each build.
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CTurboJPEG", providers: [.apt(["libturbojpeg0-dev"])]),
    .executableTarget(
      name: "Breadcrumbs",
      dependencies: ["CSQLite", "CTurboJPEG", .product(name: "WorkerKit", package: "dormouse")],
      swiftSettings: strict),
    .testTarget(name: "BreadcrumbsTests", dependencies: ["Breadcrumbs"], swiftSettings: strict),
  ]
)
