// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
]

let page = [
  "app.css", "cards.css", "common.js", "drawing.js", "favicon.svg", "index.html", "overview.js",
  "worker.html", "worker.js",
]

let package = Package(
  name: "dormouse-dashboard",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "dormouse", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    // Its traits are disabled: no configuration files, and only as much of Foundation as it needs.
    .package(
      url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
  ],
  targets: [
    .target(
      name: "Dashboard",
      dependencies: [
        .product(name: "Control", package: "dormouse"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      // The page is in the executable: nothing has to be installed beside it.
      resources: page.map { .embedInCode("Page/\($0)") },
      swiftSettings: strict),
    .executableTarget(
      name: "dormouse-dashboard",
      dependencies: [
        "Dashboard",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Control", package: "dormouse"),
      ],
      swiftSettings: strict),
    // The tests run the executable, so it must be built before them.
    .testTarget(
      name: "DashboardTests", dependencies: ["Dashboard", "dormouse-dashboard"],
      swiftSettings: strict),
  ]
)
