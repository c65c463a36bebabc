import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `Shipped policies` {
  @Test func `All shipped policies are found by name`() {
    #expect(library.names == shipped)
  }

  @Test func `The policy ios-5 equals the defaults`() {
    #expect(library.load("ios-5").value == LifecyclePolicy())
  }

  @Test(arguments: ["", "workers: {}\n", "policy_overrides: { mode: enforce }\n"])
  func `A configuration that names no policy has the policy standard`(text: String) throws {
    let read = try #require(
      ConfigurationFile.parse(
        text: text, file: "dormouse.yaml", library: library, environment: [:]
      ).value)
    #expect(read.policy == library.load("standard").value)
    let origin = read.origins.origin(of: "hibernate.after")
    #expect(origin.layer == .policy && origin.file == "\(shippedDirectory)/standard.yaml")
  }

  @Test func `A user's standard.yaml replaces the shipped one, also without a name`()
    throws
  {
    let scratch = try Scratch(["standard.yaml": "extends: standard\nhibernate: { after: 7s }\n"])
    let read = ConfigurationFile.parse(
      text: "", file: "dormouse.yaml", library: PolicyLibrary(directories: [scratch.path]),
      environment: [:])
    #expect(read.diagnostics.isEmpty, "\(read.rendered)")
    #expect(read.value?.policy.hibernate.after == .seconds(7))
    #expect(read.value?.policy.foreground.mode == .activity)
  }

  @Test func `Only standard hibernates small workers as soon as they are suspended`() throws {
    for name in shipped {
      let policy = try #require(library.load(name).value)
      #expect(policy.hibernate.atOnceUpTo == (name == "standard" ? .megabytes(16) : nil))
    }
  }

  @Test(arguments: shipped)
  func `Each shipped policy loads without a diagnostic, and is the same when it is written`(
    name: String
  ) throws {
    let result = library.load(name)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let policy = try #require(result.value)
    #expect(policy.name == name)
    let again = PolicyFile.parse(text: PolicyFile.render(policy), file: "again.yaml")
    #expect(again.diagnostics.isEmpty, "\(again.rendered)")
    #expect(again.value == policy)
    #expect(again.value.map(PolicyFile.render) == PolicyFile.render(policy))
  }

  @Test(arguments: shipped)
  func `An executable without files has the shipped policies built in`(name: String) throws {
    let alone = PolicyLibrary(directories: ["/nonexistent"])
    #expect(alone.names == shipped)
    #expect(alone.path(of: name) == nil)
    let result = alone.load(name)
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value == library.load(name).value)
    let named = ConfigurationFile.parse(
      text: "policy: \(name)\n", file: "dormouse.yaml", library: alone, environment: [:])
    #expect(named.diagnostics.isEmpty, "\(named.rendered)")
    #expect(named.value?.policy == result.value)
  }

  @Test func `A missing policy file gives a one-line error`() {
    #expect(
      PolicyFile.load(path: "/nonexistent/x.yaml").rendered
        == "/nonexistent/x.yaml: error: the file can't be opened: No such file or directory")
    #expect(
      PolicyFile.load(path: "/").rendered
        == "/: error: the file can't be read: Is a directory")
  }
}
