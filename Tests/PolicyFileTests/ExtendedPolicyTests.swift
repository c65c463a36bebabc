import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite struct `Policies that extend others` {
  private let scratch: Scratch
  private var scratchLibrary: PolicyLibrary {
    PolicyLibrary(directories: [scratch.path, shippedDirectory])
  }

  init() throws { scratch = try Scratch() }

  private func write(_ files: [String: String]) throws {
    for (name, text) in files { _ = try scratch.write(name, text) }
  }

  private func load(_ name: String) -> ParseResult<LoadedPolicy> {
    scratchLibrary.loadWithOrigins("\(scratch.path)/\(name)")
  }

  private func rendered(_ name: String) -> String {
    load(name).rendered.replacing("\(scratch.path)/", with: "")
  }

  @Test func `A policy has the values of the policy that it extends, except those that it sets`()
    throws
  {
    try write(["mine.yaml": "extends: server\nhibernate: { after: 5m }\n"])
    var expected = try #require(library.load("server").value)
    expected.name = "mine"
    expected.hibernate.after = .seconds(300)
    let result = load("mine.yaml")
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value?.policy == expected)
  }

  @Test func `A pressure level of the policy replaces that of the extended one as a whole`() throws
  {
    try write(["mine.yaml": "extends: server\npressure: { warning: { available_below: 20% } }\n"])
    let pressure = try #require(load("mine.yaml").value).policy.pressure
    #expect(pressure.warning == PressureCondition(availableBelow: .percent(20)))
    #expect(pressure.critical?.fullStall == Stall(percent: 10, window: .seconds(2)))
  }

  @Test func `A path in extends is relative to the file that has it`() throws {
    try write([
      "mine.yaml": "extends: team/all.yaml\n", "team/all.yaml": "extends: base.yml\n",
      "team/base.yml": "terminate: { grace: 7s }\n",
    ])
    #expect(load("mine.yaml").value?.policy.terminate.grace == .seconds(7))
  }

  @Test func `The origin of each value is the file in the chain that sets it`() throws {
    try write([
      "mine.yaml": "extends: base.yaml\nterminate: { grace: 1s }\n",
      "base.yaml": "extends: server\nname: team\nterminate: { settle: 3s, grace: 9s }\n",
    ])
    let origins = try #require(load("mine.yaml").value).origins
    #expect(origins.origin(of: "terminate.grace").text == "\(scratch.path)/mine.yaml:2")
    #expect(origins.origin(of: "terminate.settle").text == "\(scratch.path)/base.yaml:3")
    let order = origins.origin(of: "terminate.order")
    #expect(order.file == "\(shippedDirectory)/server.yaml" && order.layer == .policy)
    #expect(origins.origin(of: "name") == .byDefault)
  }

  @Test func `A configuration's overrides come on top of a chain of policies`() throws {
    try write([
      "dormouse.yaml": "policy: mine.yaml\npolicy_overrides: { terminate: { grace: 2s } }\n",
      "mine.yaml": "extends: server\nterminate: { grace: 1s, settle: 4s }\n",
    ])
    let read = try #require(scratch.load().value)
    #expect(read.policy.terminate.grace == .seconds(2))
    #expect(read.policy.terminate.settle == .seconds(4))
    #expect(read.origins.origin(of: "terminate.grace").layer == .overrides)
    #expect(read.origins.origin(of: "terminate.settle").file == "\(scratch.path)/mine.yaml")
  }

  @Test func `A policy may extend the shipped policy of its own name`() throws {
    try write(["server.yaml": "extends: server\nterminate: { grace: 1s }\n"])
    let result = scratchLibrary.load("server")
    #expect(result.value?.terminate.settle == .seconds(1), "\(result.rendered)")
    let builtIn = PolicyLibrary(directories: [scratch.path]).load("server")
    #expect(builtIn.value?.terminate == result.value?.terminate, "\(builtIn.rendered)")
    try write(["alone.yaml": "extends: alone\n"])
    #expect(
      rendered("alone.yaml").hasPrefix(
        "alone.yaml:1:10: error: `extends` names the policy itself\n"))
  }

  @Test func `Policies that extend each other are an error in the file that closes the circle`()
    throws
  {
    try write([
      "a.yaml": "extends: ./b.yaml\n", "b.yaml": "mode: shadow\nextends: ../\(name)/a.yaml\n",
    ])
    let text = rendered("a.yaml")
    #expect(
      text.contains(
        "b.yaml:2:10: error: `extends` makes a circle: `a.yaml` extends `b.yaml` extends `a.yaml`"),
      "\(text)")
    #expect(text.contains("a.yaml:1:10: error: the policy `./b.yaml` can't be extended"), "\(text)")
    #expect(load("a.yaml").value == nil)
  }

  private var name: String { FilePaths.name(of: scratch.path) }

  @Test func `A chain has at most five files`() throws {
    for number in 1...5 {
      try write(["p\(number).yaml": number == 5 ? "" : "extends: p\(number + 1)\n"])
    }
    #expect(load("p1.yaml").value != nil, "\(rendered("p1.yaml"))")
    try write(["p5.yaml": "extends: server\n"])
    #expect(
      rendered("p1.yaml").contains(
        "p5.yaml:1:10: error: `extends` would make a chain of more than 5 policies"))
  }

  static let mistakes: [BadText] = [
    BadText(
      "extends: sever", "`extends` names no policy: there is no policy named `sever`",
      "did you mean `server`? Available: "),
    BadText(
      "extends: ./bsae.yaml", "`extends` names a file that doesn't exist: `",
      "did you mean `base.yaml`?"),
    BadText("extends: base", "`extends` names no policy", "write `base.yaml` for the file beside"),
    BadText("extends: ~/base.yaml", "`extends` can't begin with `~`", "write the path out"),
    BadText("extends: []", "`extends` must be the name of a policy, or the path of"),
    BadText("extnds: server", "unknown key `extnds`", "did you mean `extends`?"),
  ]

  @Test(arguments: mistakes)
  func `A mistake in extends is an error with its position and a suggestion`(bad: BadText) throws {
    try write(["in/mine.yaml": bad.text + "\n", "in/base.yaml": ""])
    let result = load("in/mine.yaml")
    #expect(result.value == nil && result.diagnostics.count == 1, "\(result.rendered)")
    let only = try #require(result.diagnostics.first)
    #expect(only.message.hasPrefix(bad.message), "\(only.message)")
    #expect(only.position?.line == 1)
    #expect(bad.suggestion.map { only.suggestion?.hasPrefix($0) == true } ?? true, "\(only)")
  }

  @Test func `An error in an extended policy is reported at its position, and at extends`() throws {
    try write(["mine.yaml": "extends: base.yaml\n", "base.yaml": "terminate: { grcae: 1s }\n"])
    let text = rendered("mine.yaml")
    #expect(text.contains("base.yaml:1:14: error: unknown key `grcae` in `terminate`"), "\(text)")
    #expect(text.contains("mine.yaml:1:10: error: the policy `base.yaml` can't be extended"))
  }

  @Test(arguments: [
    "policy_overrides: { extends: server }",
    "workers: { w: { command: a, policy: { extends: server } } }",
  ])
  func `Overrides extend no policy`(text: String) {
    let result = configuration(text)
    #expect(
      result.errors.map(\.message) == ["`extends` belongs at the top of a policy file"],
      "\(result.rendered)")
  }
}
