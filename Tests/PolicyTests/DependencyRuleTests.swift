import Testing

@testable import Policy

@Suite struct `Dependencies` {
  private static let needs: [(name: String, needs: [String])] = [
    ("web", ["db", "cache"]), ("cache", []), ("db", ["disk"]), ("disk", []), ("cron", ["web"]),
  ]

  @Test func `Workers start after those on which they depend`() {
    #expect(DependencyOrder.cycle(in: Self.needs) == nil)
    #expect(DependencyOrder.sequence(Self.needs) == ["disk", "db", "cache", "web", "cron"])
    #expect(
      DependencyOrder.sequence([("web", ["db"]), ("z", ["web", "nowhere"]), ("db", []), ("y", [])])
        == ["db", "web", "z", "y"])
    #expect(DependencyOrder.sequence([("a", ["b"]), ("b", ["a"])]).sorted() == ["a", "b"])
    #expect(DependencyOrder.cycle(in: [("a", ["stranger"])]) == nil)
  }

  @Test func `Dependencies in a circle are named, from the one declared first`() {
    let needs: [(name: String, needs: [String])] = [
      ("x", ["c"]), ("b", ["c"]), ("c", ["d", "a"]), ("a", ["b"]), ("d", []),
    ]
    #expect(DependencyOrder.cycle(in: needs) == ["b", "c", "a"])
    #expect(DependencyOrder.cycle(in: [("a", ["a"])]) == ["a"])
  }

  @Test func `Dependencies of thousands of workers are ordered`() {
    let tree = (0..<2_000).map { (name: "w\($0)", needs: $0 == 0 ? [] : ["w\(($0 - 1) / 2)"]) }
    #expect(DependencyOrder.sequence(tree) == tree.map(\.name))
    let chain = (0..<20_000).map { (name: "w\($0)", needs: ["w\(($0 + 1) % 20_000)"]) }
    #expect(DependencyOrder.cycle(in: chain)?.count == 20_000)
  }

  static let verdicts: [(Dependency.Condition, Dependency.Progress, Dependency.Verdict)] = [
    (.started, .notStarted, .waiting), (.started, .launched, .met),
    (.started, .ended(succeeded: false), .met), (.ready, .launched, .waiting),
    (.ready, .ready, .met), (.ready, .ended(succeeded: true), .met),
    (.ready, .ended(succeeded: false), .impossible), (.exitedOK, .ready, .waiting),
    (.exitedOK, .ended(succeeded: true), .met),
    (.exitedOK, .ended(succeeded: false), .impossible), (.exited, .ready, .waiting),
    (.exited, .ended(succeeded: false), .met),
  ]

  @Test(arguments: verdicts)
  func `A dependency is met, waits or can't be met`(
    condition: Dependency.Condition, progress: Dependency.Progress, verdict: Dependency.Verdict
  ) {
    #expect(Dependency("db", condition).verdict(progress) == verdict)
  }

  @Test func `Sockets conflict where the kernel would refuse the second`() {
    func socket(_ address: ListenSocket.Address) -> ListenSocket {
      ListenSocket(name: "s", address: address)
    }
    let web = socket(.tcp(host: "127.0.0.1", port: 80))
    #expect(web.conflicts(with: socket(.tcp(host: "0.0.0.0", port: 80))))
    #expect(web.conflicts(with: socket(.tcp(host: "::", port: 80))))
    #expect(!web.conflicts(with: socket(.tcp(host: "127.0.0.2", port: 80))))
    #expect(!web.conflicts(with: socket(.tcp(host: "::1", port: 80))))
    #expect(!web.conflicts(with: socket(.udp(host: "127.0.0.1", port: 80))))
    #expect(!web.conflicts(with: socket(.tcp(host: "127.0.0.1", port: 81))))
    #expect(socket(.unix("/run/a")).conflicts(with: socket(.unix("/run/a"))))
  }
}
