// swift-tools-version: 6.2
import PackageDescription

// Each layer of docs/ARCHITECTURE.md is a target. Imports are downwards only:
// `--explicit-target-dependency-import-check error` (see the Makefile) checks that.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
]

// The settings of modules that hardly compute in a daemon: they are small rather than fast.
let small: [SwiftSetting] = [.unsafeFlags(["-Osize"], .when(configuration: .release))]
let compact = strict + small

// The settings of modules that compute most while tests run: scans of /proc were a third of a
// daemon's processor time there, JSON a sixth of its clients', and simulated lives run in the
// engine. They are optimized in debug builds, too, with assertions. So tests also run code of the
// optimizer.
let fast = strict + [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

let package = Package(
  name: "dormouse",
  // WorkerKit is for macOS, too: only its mechanisms are Linux's.
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "dormouse", targets: ["dormouse"]),
    .library(name: "WorkerKit", targets: ["WorkerKit"]),
    // The daemon's socket and its messages, for Companions.
    .library(name: "Control", targets: ["Control", "JSONLines", "Linux"]),
    // The policies that a label may set, for Companions/Containers.
    .library(name: "Settings", targets: ["Policy", "PolicyFile"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")
  ],
  targets: [
    .systemLibrary(
      name: "CZstd",
      pkgConfig: "libzstd",
      providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(
      name: "CLz4",
      pkgConfig: "liblz4",
      providers: [.apt(["liblz4-dev"])]),
    .systemLibrary(
      name: "CYaml",
      pkgConfig: "yaml-0.1",
      providers: [.apt(["libyaml-dev"])]),
    .target(name: "CLinux"),
    // CRC-32 of both kinds, for all that is written to a disk.
    .target(name: "Checksum", dependencies: ["CLinux"], swiftSettings: fast),

    // JSON without Foundation, its Codable values, lines of a stream, and base64: for the journal,
    // the control socket and workers.
    .target(name: "JSONLines", swiftSettings: fast),
    .target(name: "WorkerProtocol", dependencies: ["JSONLines"], swiftSettings: strict),

    // Pictures: axes, numbers, SVG.
    .target(name: "Drawing", swiftSettings: strict),

    // The library that a cooperative worker links. It has no Foundation, and nothing of the daemon.
    .target(name: "CWorkerKit"),
    .target(
      name: "WorkerKit", dependencies: ["CWorkerKit", "JSONLines", "WorkerProtocol"],
      swiftSettings: strict),

    .target(name: "Policy", swiftSettings: fast),
    .target(name: "Lifecycle", dependencies: ["Policy"], swiftSettings: fast),
    .target(name: "YAML", dependencies: ["CYaml"], swiftSettings: strict),
    // The texts of Policies/ in the executable.
    .target(
      name: "ShippedPolicies", path: "Policies",
      resources: ["android", "developer", "ios-5", "iphone-os-3", "server", "standard"]
        .map { .embedInCode("\($0).yaml") } + [.embedInCode("rules")],
      swiftSettings: compact),
    .target(
      name: "PolicyFile", dependencies: ["JSONLines", "Policy", "ShippedPolicies", "YAML"],
      swiftSettings: compact),
    .target(
      name: "Simulation", dependencies: ["Drawing", "Lifecycle", "Policy"],
      swiftSettings: fast + small),
    .target(
      name: "Journal", dependencies: ["Checksum", "JSONLines", "Lifecycle", "Policy"],
      swiftSettings: compact),

    // Finds what the recorded history shows about policies.
    .target(
      name: "Deciding",
      dependencies: ["JSONLines", "Journal", "Lifecycle", "Policy", "PolicyFile", "Simulation"],
      swiftSettings: compact),

    .target(name: "Linux", dependencies: ["CLinux"], swiftSettings: fast),
    .target(
      name: "Hibernation",
      dependencies: ["Checksum", "Linux", "CLinux", "CLz4", "CZstd"],
      swiftSettings: strict),
    .target(
      name: "Supervision",
      dependencies: ["Checksum", "Linux", "CLinux", "JSONLines", "Policy", "WorkerProtocol"],
      swiftSettings: compact),
    .target(
      name: "Control", dependencies: ["JSONLines", "Linux", "Policy"], swiftSettings: compact),
    .target(
      name: "Daemon",
      dependencies: [
        "Checksum", "Policy", "Lifecycle", "PolicyFile", "Journal", "Linux", "CLinux",
        "Hibernation", "Supervision", "Control", "JSONLines", "WorkerProtocol",
      ],
      swiftSettings: compact),

    // `dormouse wrap`: the daemon's components around one program.
    .target(
      name: "Wrap",
      dependencies: [
        "CLinux", "Control", "Daemon", "Lifecycle", "Linux", "Policy", "PolicyFile", "Supervision",
      ],
      swiftSettings: compact),

    // `dormouse integrate`: edits the configuration of editors and agents.
    .target(name: "Integrate", dependencies: ["Control", "Linux", "YAML"], swiftSettings: compact),

    // Modules beside the daemon: they measure a worker's resume, examine a machine, and record
    // footprints, with their format, their statistics and their pictures.
    .target(
      name: "Bench",
      dependencies: [
        "CLinux", "Control", "Drawing", "Hibernation", "Linux", "Policy", "Supervision",
      ],
      swiftSettings: compact),
    .target(
      name: "Doctor",
      dependencies: ["CLinux", "Control", "Hibernation", "Linux", "Supervision"],
      swiftSettings: compact),
    .target(
      name: "FootprintTrace",
      dependencies: ["CLinux", "Control", "Drawing", "JSONLines", "Journal", "Linux", "Policy"],
      swiftSettings: compact),
    .executableTarget(
      name: "dormouse",
      dependencies: [
        "Policy", "Lifecycle", "PolicyFile", "Journal", "Linux", "Hibernation", "Supervision",
        "Bench", "Daemon", "Deciding", "Doctor", "Control", "FootprintTrace", "Integrate",
        "JSONLines", "Simulation", "Wrap",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: compact),

    // Benchmarks/engine.py runs this program.
    .executableTarget(
      name: "EngineBenchmark", dependencies: ["Lifecycle", "Policy", "Simulation"],
      path: "Benchmarks/Engine", exclude: ["mallocs.c"], swiftSettings: strict),
    // This program links Foundation, to measure its NSCache beside WorkerKit's cache.
    .executableTarget(
      name: "WorkerKitBenchmark", dependencies: ["WorkerKit"], path: "Benchmarks/WorkerKit",
      swiftSettings: strict),

    // The code that tests share. It isn't a product of this package, and has no Foundation.
    .target(
      name: "TestSupport", dependencies: ["JSONLines"], path: "Tests/TestSupport",
      swiftSettings: strict),
    // Fakes for the daemon's loop.
    .target(
      name: "DaemonFakes", dependencies: ["Daemon", "Linux", "Policy", "TestSupport"],
      path: "Tests/DaemonFakes", swiftSettings: strict),

    .testTarget(name: "ChecksumTests", dependencies: ["Checksum"], swiftSettings: strict),
    .testTarget(name: "JSONLinesTests", dependencies: ["JSONLines"], swiftSettings: strict),
    .testTarget(
      name: "TidyTests", dependencies: ["TestSupport"], exclude: ["ratchet.txt"],
      swiftSettings: strict),
    .testTarget(name: "DrawingTests", dependencies: ["Drawing"], swiftSettings: strict),
    .testTarget(
      name: "FootprintTraceTests", dependencies: ["FootprintTrace", "JSONLines", "Linux"],
      swiftSettings: strict),
    .testTarget(name: "PolicyTests", dependencies: ["Policy"], swiftSettings: strict),
    .testTarget(
      name: "LifecycleTests",
      dependencies: ["Lifecycle", "Policy", "PolicyFile", "Simulation", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "SimulationTests",
      dependencies: ["Simulation", "Lifecycle", "Policy", "PolicyFile", "TestSupport", "dormouse"],
      swiftSettings: strict),
    .testTarget(
      name: "JournalTests",
      dependencies: ["Journal", "JSONLines", "Lifecycle", "Policy", "Simulation", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "DecidingTests",
      dependencies: [
        "Deciding", "JSONLines", "Journal", "Lifecycle", "Policy", "PolicyFile", "Simulation",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(name: "YAMLTests", dependencies: ["YAML"], swiftSettings: strict),
    .testTarget(
      name: "PolicyFileTests", dependencies: ["PolicyFile", "Policy", "TestSupport", "YAML"],
      swiftSettings: strict),
    .testTarget(
      name: "LinuxTests", dependencies: ["Linux", "CLinux", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "HibernationTests",
      dependencies: ["Checksum", "Hibernation", "Linux", "CLinux", "CZstd", "TestSupport"],
      swiftSettings: strict),
    // A daemon that the tests of recovery kill.
    .executableTarget(
      name: "HibernateProbe", dependencies: ["Hibernation", "Linux", "CLinux", "TestSupport"],
      path: "Tests/HibernateProbe", swiftSettings: strict),
    .testTarget(
      name: "SupervisionTests",
      dependencies: [
        "Checksum", "Supervision", "CLinux", "Linux", "Policy", "WorkerProtocol", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ControlTests",
      dependencies: [
        "Control", "JSONLines", "Linux", "PolicyFile", "TestSupport", "dormouse",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "WorkerProtocolTests", dependencies: ["WorkerProtocol", "JSONLines", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "WorkerKitTests",
      dependencies: [
        "WorkerKit", "WorkerProtocol", "JSONLines", "Linux", "Supervision", "TestSupport",
      ],
      swiftSettings: strict),
    // A worker with all of WorkerKit, which EndToEndTests runs under a daemon.
    .executableTarget(
      name: "WorkerKitProbe", dependencies: ["WorkerKit"], path: "Tests/WorkerKitProbe",
      swiftSettings: strict),
    .testTarget(
      name: "DaemonTests",
      dependencies: [
        "Control", "Daemon", "DaemonFakes", "Hibernation", "Journal", "Lifecycle", "Linux",
        "Policy",
        "PolicyFile", "Simulation", "Supervision", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "WrapTests",
      dependencies: [
        "Control", "Daemon", "DaemonFakes", "JSONLines", "Lifecycle", "Linux", "Policy",
        "PolicyFile", "TestSupport", "Wrap",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "IntegrateTests", dependencies: ["Integrate", "JSONLines", "Linux", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "BenchTests", dependencies: ["Bench", "Control", "Doctor", "Linux", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "DoctorTests", dependencies: ["Control", "Doctor", "Linux", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "EndToEndTests",
      dependencies: ["CLinux", "Control", "JSONLines", "Linux", "TestSupport", "dormouse"],
      swiftSettings: strict),
  ]
)
