import Policy
import Testing

@testable import PolicyFile

@Suite struct `Shipped policies` {
  @Test(arguments: shipped) func `load without a word`(name: String) throws {
    let result = library.load(name)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(try #require(result.value).name == name)
  }

  @Test func `are all found by name`() {
    #expect(library.names == shipped)
  }

  @Test func `ios-5 is what the defaults are`() {
    #expect(library.load("ios-5").value == LifecyclePolicy())
  }

  @Test func `iphone-os-3 neither suspends nor hibernates, and warns first`() throws {
    let policy = try #require(library.load("iphone-os-3").value)
    #expect(policy.background.suspendAfter == nil)
    #expect(!policy.hibernate.enabled)
    #expect(policy.ladder.warning == [.warn])
    #expect(policy.ladder.urgent.last == .terminate(.background))
    #expect(policy.ladder.critical.last == .terminate(.foreground))
    #expect(policy.pressure.critical?.availableBelow == .percent(5))
    #expect(policy.watchdog.launch == .seconds(20))
  }

  @Test func `server goes by activity, without a limit in front`() throws {
    let policy = try #require(library.load("server").value)
    #expect(policy.foreground.mode == .activity)
    #expect(policy.foreground.max == nil)
    #expect(policy.terminate.order == [.band, .recency, .footprint])
    #expect(policy.hibernate.maxFootprint == .megabytes(256))
  }

  @Test(arguments: shipped) func `come back from their own rendering`(name: String) throws {
    let policy = try #require(library.load(name).value)
    let again = PolicyFile.parse(text: PolicyFile.render(policy), file: "again.yaml")
    #expect(again.diagnostics.isEmpty, "\(again.rendered)")
    #expect(again.value == policy)
    #expect(again.value.map(PolicyFile.render) == PolicyFile.render(policy))
  }

  @Test func `an unknown name is answered with those that exist`() {
    let result = library.load("ios5")
    #expect(
      result.rendered == """
        ios5: error: there is no policy named `ios5`
        help: did you mean `ios-5`? Available: android, developer, ios-5, iphone-os-3, server
        """)
    #expect(library.load("../Policies/nothing").value == nil)
  }

  @Test(arguments: shipped)
  func `are built in as their files say, for an executable without files`(name: String) throws {
    let alone = PolicyLibrary(directories: ["/nonexistent"])
    #expect(alone.names == shipped)
    #expect(alone.path(of: name) == nil)
    let result = alone.load(name)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let file = try #require(library.path(of: name))
    let text = try FileContents.read(file).get()
    #expect(BuiltInPolicies.text(of: name).map { $0 + "\n" } == text, "run scripts/embed-policies")
    #expect(result.value == library.load(name).value)
  }

  @Test(arguments: shipped)
  func `are known to a configuration, for an executable without files`(name: String) throws {
    let alone = PolicyLibrary(directories: ["/nonexistent"])
    let result = ConfigurationFile.parse(
      text: "policy: \(name)\n", file: "dormouse.yaml", library: alone, environment: [:])
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value?.policy == library.load(name).value)
  }

  @Test func `a file that isn't there is one sentence`() {
    #expect(
      PolicyFile.load(path: "/nonexistent/x.yaml").rendered
        == "/nonexistent/x.yaml: error: the file can't be opened: No such file or directory")
    #expect(
      PolicyFile.load(path: "/").rendered
        == "/: error: the file can't be read: Is a directory")
  }
}
