// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "consume",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "dormouse", path: "../..")],
  targets: [
    .executableTarget(
      name: "consume", dependencies: [.product(name: "WorkerKit", package: "dormouse")],
      swiftSettings: strict),
    // The tests run the executable, so it must be built before them.
    .testTarget(name: "ConsumeTests", dependencies: ["consume"], swiftSettings: strict),
  ]
)
