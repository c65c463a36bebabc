import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `Reading policies` {
  @Test func `An empty policy file gives the defaults and takes its name from the file`() {
    var expected = LifecyclePolicy()
    expected.name = "p"
    #expect(policy("").value == expected)
    #expect(policy("# nothing\n").value == expected)
    #expect(policy("memory:\n  # budget: 1GB\n").value == expected)
  }

  @Test func `Units are powers of 1024, and decimals are accepted`() throws {
    let policy = try #require(
      policy("hibernate: { max_footprint: 1.5GB, min_footprint: 0.5KB, after: 1.5s }").value)
    #expect(policy.hibernate.maxFootprint == .megabytes(1536))
    #expect(policy.hibernate.minFootprint == ByteCount(512))
    #expect(policy.hibernate.after == .milliseconds(1500))
  }

  @Test func `The words never and unlimited stand for no limit`() throws {
    let policy = try #require(
      policy(
        """
        pressure: { warning: never }
        foreground: { max: unlimited }
        background: { suspend_after: never }
        hibernate: { after: never, max_footprint: unlimited }
        """
      ).value)
    #expect(policy.pressure.warning == nil)
    #expect(policy.foreground.max == nil)
    #expect(policy.background.suspendAfter == nil)
    #expect(policy.hibernate.after == nil)
    #expect(policy.hibernate.maxFootprint == nil)
    #expect(PolicyFile.parse(text: PolicyFile.render(policy), file: "x").value == policy)
  }

  @Test func `The word never instead of terminate protects from termination for lack of memory`()
    throws
  {
    var expected = LifecyclePolicy(name: "p")
    expected.terminate.forMemory = false
    let short = policy("terminate: never")
    #expect(short.value == expected)
    #expect(short.warnings.count == 1 && short.warnings.first?.position?.column == 12)
    #expect(policy("terminate: { for_memory: false }").value == expected)
    #expect(PolicyFile.parse(text: PolicyFile.render(expected), file: "p").value == expected)
    let wrong = policy("terminate: nevr")
    #expect(
      wrong.errors.map(\.message) == [
        "`terminate` must be a mapping of keys to values, `never` or `ask`, not `nevr`"
      ])
    #expect(wrong.errors.first?.suggestion == "did you mean `never`?")
  }

  @Test func `One worker's policy may be terminate never without a warning, and other keys stay`()
    throws
  {
    let read = configuration(
      """
      policy_overrides: { terminate: { grace: 7s } }
      workers:
        db: { command: sleep 1, policy: { terminate: never } }
        web: { command: sleep 1 }
      """)
    #expect(read.diagnostics.isEmpty, "\(read.rendered)")
    let parsed = try #require(read.value)
    #expect(parsed.workers.map(\.policy.terminate.forMemory) == [false, true])
    #expect(parsed.workers[0].policy.terminate.grace == .seconds(7))
    func origin(_ key: String) -> Origin {
      parsed.origins.origin(of: "terminate.\(key)", worker: "db")
    }
    #expect(origin("for_memory").layer == .worker && origin("for_memory").position?.line == 3)
    #expect(origin("grace").layer == .overrides && origin("order") == .byDefault)
  }

  @Test func `Overrides change the values that they name and no others`() throws {
    let base = try #require(library.load("server").value)
    var expected = base
    expected.memory = .device(.megabytes(96))
    expected.pressure.warning = PressureCondition(availableBelow: .percent(20))
    let result = PolicyFile.parse(
      text: "memory: { budget: 96MB }\npressure: { warning: { available_below: 20% } }",
      file: "o.yaml", over: base)
    #expect(result.value == expected)
    #expect(result.diagnostics.isEmpty)
  }

  @Test func `Overrides are checked together with the policy that they change`() {
    let result = PolicyFile.parse(
      text: "background: { suspend_after: 1s }", file: "o.yaml", over: LifecyclePolicy())
    #expect(result.warnings.count == 1)
    let renamed = PolicyFile.parse(text: "name: x", file: "o.yaml", over: LifecyclePolicy())
    #expect(renamed.errors.map(\.message) == ["`name` can't be overridden: it is the policy's own"])
  }

  @Test func `An alias in a policy file may stand for a value`() {
    let result = policy(
      "pressure:\n  warning: { stall: &s { some: 10%, window: 2s } }\n"
        + "  critical: { available_below: 5%, stall: *s }\n")
    #expect(result.value?.pressure.critical?.someStall == Stall(percent: 10, window: .seconds(2)))
  }

  @Test(arguments: [
    ("hibernat", "hibernate"), ("grcae", "grace"), ("HOST", "host"), ("max", "max_footprint"),
  ])
  func `The nearest spelling of a mistyped word is suggested`(word: String, meant: String) {
    #expect(nearest(to: word, among: ["grace", "hibernate", "host", "max_footprint"]) == meant)
  }

  @Test func `A word that resembles no known word gets no suggestion`() {
    #expect(nearest(to: "xy", among: ["ms", "by", "max"]) == "by")
    #expect(nearest(to: "zebra", among: ["grace", "host"]) == nil)
    #expect(nearest(to: "", among: ["a"]) == nil)
    #expect(nearest(to: String(repeating: "a", count: 100_000), among: ["a"]) == nil)
  }

  @Test func `Random policies that are rendered and read again are equal`() throws {
    var random = TestRandom(seed: 5)
    for _ in 0..<300 {
      var policy = LifecyclePolicy(name: "r")
      policy.hibernate.minFootprint = ByteCount(Int64.random(in: 0...(1 << 40), using: &random))
      policy.hibernate.maxFootprint = nil
      policy.terminate.grace = .milliseconds(Int64.random(in: 0...1_000_000_000, using: &random))
      policy.foreground.cpuBelow = Double(Int.random(in: 0...100_000, using: &random)) / 1_000
      policy.hibernate.compressionAlgorithm = Bool.random(using: &random) ? .zstd : .lz4
      policy.hibernate.compressionLevel = Int.random(in: -7...19, using: &random)
      policy.hibernate.overlay = Bool.random(using: &random)
      policy.hibernate.encrypt = Bool.random(using: &random)
      policy.hibernate.durability = Bool.random(using: &random) ? .synced : .cached
      policy.hibernate.dropFilePages = Bool.random(using: &random)
      policy.hibernate.keepWorkingSet = Bool.random(using: &random)
      let text = PolicyFile.render(policy)
      #expect(PolicyFile.parse(text: text, file: "r.yaml").value == policy, "\(text)")
    }
  }
}
