import TestSupport
import Testing

@testable import Linux

/// The kernel's texts about a worker contain names, paths and numbers that the worker chooses. A
/// parser that traps would end the daemon. A failing run ends this process, after it has printed
/// its seed.
@Suite("Damaged texts of /proc") struct HostileProcTests {
  private static let parsers: [String: @Sendable ([UInt8]) -> Void] = [
    "self/stat": { text in
      if let stat = ProcessStat(parsing: text) { #expect(stat.name.utf8.count <= 3 * text.count) }
    },
    "self/status": { text in
      _ = ProcessStatus(parsing: text)
      _ = WaitingSignals(parsing: text)
    },
    "self/smaps": { text in
      for mapping in MemoryMapping.parse(text) { _ = (mapping.name, mapping.flags) }
      for line in text.split(separator: 10) { _ = MemoryMapping(header: line) }
    },
    "self/smaps_rollup": { _ = Footprint(parsing: $0) },
    "self/cgroup": { _ = CgroupRoot.groupPath(parsing: String(decoding: $0, as: UTF8.self)) },
    "self/mountinfo": { text in
      for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
        _ = Mount(parsing: line)
      }
    },
    "self/syscall": { _ = WaitingCall(String(decoding: $0, as: UTF8.self)) },
    "meminfo": { text in
      _ = HostMemory(parsing: text)
      _ = MemoryInfo(parsing: text)
    },
    "zoneinfo": { _ = MemoryInfo.perCPUPages(parsing: $0) },
    "pressure/memory": { _ = PressureStall(parsing: $0) },
  ]

  @Test("No parser traps, whatever the file contains", arguments: parsers.keys.sorted())
  func damaged(name: String) throws {
    let parse = try #require(Self.parsers[name])
    // A kernel may lack one of the files, or may not let ordinary users read it.
    let text = (try? readFile("/proc/\(name)")) ?? []
    parse(text)
    parse([])
    var random = TestRandom(runSeed: TestRandom.runSeed, for: name)
    for _ in 0..<300 { parse(random.mutated(Array(text.prefix(20_000)))) }
  }
}
