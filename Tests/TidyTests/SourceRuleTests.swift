import Foundation
import TestSupport
import Testing

/// Rules for the sources that the compiler doesn't check.
@Suite("The sources")
struct SourceRuleTests {
  /// Where `errno` is taken, each in a function that takes it before anything else can change it.
  private static let funnels: Set<String> = [
    "Linux/Syscall/SystemCall.swift",
    // Targets that don't link `Linux`.
    "PolicyFile/Reading/FileContents.swift",
  ]

  private static func sources() -> [(path: String, lines: [String])] {
    let all = Repository.files.filter { $0.isSwift && $0.path.hasPrefix("Sources/") }
      .map { (String($0.path.dropFirst("Sources/".count)), $0.lines) }
    #expect(all.count > 300)
    return all
  }

  @Test(
    "Sources read errno only in the funnels for system calls, where nothing can have changed it")
  func errnoOnlyInFunnels() {
    for (path, lines) in Self.sources() where !Self.funnels.contains(path) {
      for (number, line) in lines.enumerated() {
        guard line.contains("errno") else { continue }
        let code = line.components(separatedBy: "//")[0]
        #expect(
          !code.contains(/\berrno\b/),
          "Sources/\(path):\(number + 1) reads errno; use systemCall, kernelResult or a shim")
      }
    }
  }

  @Test func `No function is task-local: Swift 6.3 optimizes that into a crash at its first use`() {
    for (path, lines) in Self.sources() {
      for (number, line) in lines.enumerated() where line.contains("@TaskLocal") {
        #expect(!line.contains("->"), "Sources/\(path):\(number + 1): put it into a struct")
      }
    }
  }

  /// Where the daemon may look at all processes of the machine, which takes seconds where there are
  /// many: on another thread, or before its loop runs.
  private static let processLooks: Set<String> = [
    "Daemon/Sense/ProcessScanner.swift", "Daemon/Sense/KernelActivitySource.swift",
    // On threads of their own.
    "Daemon/Worker/KernelWorkerProcesses.swift", "Daemon/Sense/SafePointCheck.swift",
    "Daemon/Sense/FootprintMeter.swift", "Daemon/Worker/Sleep/SuspendJob.swift",
    "Daemon/External/ExternalProcess.swift", "Daemon/External/Rules/AdoptionPreview.swift",
    // While the daemon starts.
    "Daemon/Takeover/SurvivorState.swift",
    "Daemon/Talk/WorkerConversations.swift",
    "Daemon/Worker/Launch/ListeningAtStart.swift",
    // It reads the processes of its cgroup only.
    "Daemon/ControlService/WorkerReporter.swift",
    // The wrapper stops itself next, or runs again.
    "Wrap/WrappedProcess.swift",
  ]

  @Test("Sources read the list of all processes only where the event loop doesn't wait for that")
  func processLooks() throws {
    for (path, lines) in Self.sources() {
      guard path.hasPrefix("Daemon/") || path.hasPrefix("Wrap/") else { continue }
      if Self.processLooks.contains(path) { continue }
      for (number, line) in lines.enumerated() {
        let code = line.components(separatedBy: "//")[0]
        #expect(
          !code.contains(/process\??\.tree\(|ProcessScan\.read|ProcessTree\.discover/),
          "Sources/\(path):\(number + 1) looks at all processes; use withTree or scanProcesses")
      }
    }
  }

  /// On arm64 a call that returns EINTR for a freeze can be repaired only if it is recorded before.
  @Test func `Sources freeze a cgroup by WorkerCgroup only, which records the calls of threads`() {
    for (path, lines) in Self.sources() where path != "Linux/Cgroup/WorkerCgroup.swift" {
      for (number, line) in lines.enumerated() {
        #expect(
          !line.contains("cgroup.freeze\", \"1\""),
          "Sources/\(path):\(number + 1) freezes a cgroup; use freeze or beginFreeze")
      }
    }
  }

  /// Each composes a daemon.
  private static let compositions: Set<String> = [
    "Daemon/App/Daemon.swift", "Wrap/WrapComposition.swift",
    "dormouse/Commands/Daemon/DaemonCommand.swift",
  ]

  @Test func `Sources name the type Daemon only where a daemon is composed`() {
    for (path, lines) in Self.sources() where !Self.compositions.contains(path) {
      for (number, line) in lines.enumerated() {
        guard line.contains("Daemon"), !line.hasPrefix("import ") else { continue }
        let code = line.components(separatedBy: "//")[0].replacing(/"[^"]*"/, with: "")
        #expect(
          !code.contains(/\bDaemon\b/),
          "Sources/\(path):\(number + 1) names Daemon; take what it needs of it in the initialiser")
      }
    }
  }

  /// The C string that Swift makes of a `String` argument is freed when the call returns, and so
  /// before the funnel takes `errno`. The funnels' own variants for paths hold it until after that.
  @Test func `Sources pass no String as a path to a system call inside a funnel`() throws {
    let calls =
      "access|chmod|chown|execv|lchown|link|lstat|mkdir|mkfifo|mknod|open|opendir|readlink|realpath"
      + "|rename|rmdir|stat|statvfs|symlink|truncate|unlink"
    let funnels = [
      "systemCall", "kernelResult", "pointerCall",
    ]
    let bridged = try Regex(
      "(\(funnels.joined(separator: "|")))\\b[^\\n]*"
        + "\\{[^{}]*\\b(\(calls))\\((?!\\$0|text\\b|from\\b)")
    for (path, lines) in Self.sources() {
      for (number, line) in lines.enumerated() {
        guard funnels.contains(where: line.contains) else { continue }
        let next = number + 1 < lines.count ? lines[number + 1] : ""
        // A closure that begins on this line may have its call on the next.
        let code = line.hasSuffix("{") ? line + next : line
        #expect(
          !code.contains(bridged),
          "Sources/\(path):\(number + 1): use the variant with `path:`, which passes a C string"
        )
      }
    }
  }

  @Test func `Every test suite that SECURITY.md names exists`() throws {
    let root = Repository.root
    let text = try String(contentsOf: root.appending(path: "SECURITY.md"), encoding: .utf8)
    let names = text.matches(of: /`([A-Za-z]+Tests\/[A-Za-z]+Tests)`/).map { String($0.output.1) }
    #expect(Set(names).count > 10)
    for name in names {
      #expect(SourceTree.test(name) != nil, "\(name)")
    }
  }
}
