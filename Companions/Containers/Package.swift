// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "dormouse-containers",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "dormouse", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.0"),
    .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
  ],
  targets: [
    // The decisions about labels, names, and wanted and managed containers. It has no I/O.
    .target(
      name: "ContainerPlan",
      dependencies: [
        .product(name: "Control", package: "dormouse"),
        .product(name: "Settings", package: "dormouse"),
      ],
      swiftSettings: strict),
    // The calls of the Container Runtime Interface of containerd and CRI-O that are used here.
    .target(
      name: "CRI",
      dependencies: [
        .product(name: "GRPCCore", package: "grpc-swift-2"),
        .product(name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport"),
      ],
      swiftSettings: strict),
    // The few calls of the Kubernetes API that are made here.
    .target(
      name: "KubernetesAPI",
      dependencies: [
        .product(name: "Control", package: "dormouse"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: strict),
    // The reports about pods: events, a condition, requests. Its decisions are pure.
    .target(
      name: "PodReports",
      dependencies: [
        "KubernetesAPI",
        .product(name: "Control", package: "dormouse"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      swiftSettings: strict),
    .target(
      name: "Containers",
      dependencies: [
        "ContainerPlan", "CRI", "KubernetesAPI", "PodReports",
        .product(name: "Control", package: "dormouse"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "dormouse-containers",
      dependencies: [
        "Containers",
        "ContainerPlan",
        "KubernetesAPI",
        "PodReports",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Control", package: "dormouse"),
      ],
      swiftSettings: strict),
    // The tests run the executable, so it must be built before them.
    .testTarget(
      name: "ContainersTests",
      dependencies: [
        "CRI", "Containers", "ContainerPlan", "KubernetesAPI", "PodReports",
        "dormouse-containers",
        .product(name: "Control", package: "dormouse"),
        .product(name: "Settings", package: "dormouse"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: strict),
  ]
)
