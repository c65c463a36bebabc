import Policy
import Testing

@testable import PolicyFile

@Suite struct `The policy that a request for adoption chooses` {
  private let machine: LifecyclePolicy = {
    var policy = LifecyclePolicy(name: "machine")
    policy.mode = .shadow
    policy.memory = .device(.kilobytes(64 << 10))
    policy.foreground = ForegroundRules(mode: .activity, max: 3)
    return policy
  }()

  private func resolved(_ chosen: AdoptedPolicy) throws -> LifecyclePolicy {
    try chosen.resolved(try chosen.load(from: .builtIn), over: machine)
  }

  @Test func `A request that chooses nothing gets the machine's policy`() throws {
    #expect(try resolved(AdoptedPolicy()) == machine)
  }

  @Test func `A named policy decides for the worker, and the machine what all workers share`()
    throws
  {
    let server = try #require(PolicyLibrary.builtIn.load("server").value)
    let policy = try resolved(AdoptedPolicy(name: "server"))
    #expect(policy.name == "server" && policy.background == server.background)
    #expect(policy.hibernate.after == server.hibernate.after)
    #expect(policy.mode == .shadow && policy.memory == machine.memory)
    #expect(policy.pressure == machine.pressure && policy.ladder == machine.ladder)
    #expect(policy.foreground.mode == .activity && policy.foreground.max == 3)
    #expect(policy.foreground.idleAfter == server.foreground.idleAfter)
  }

  @Test func `Settings replace values of the named policy, and shadow mode is added`() throws {
    let chosen = AdoptedPolicy(
      name: "server", settings: ["hibernate.after=7s", "background.suspend_after=2s"],
      isShadow: true)
    let policy = try resolved(chosen)
    #expect(policy.hibernate.after == .seconds(7))
    #expect(policy.background.suspendAfter == .seconds(2) && policy.mode == .shadow)
  }

  @Test(arguments: [
    (AdoptedPolicy(name: "sever"), "`policy=sever`: there is no policy named `sever`"),
    (AdoptedPolicy(settings: ["hibernate.aftr=5m"]), "did you mean `hibernate.after`?"),
    (AdoptedPolicy(settings: ["foreground.max=3"]), "can't be set for one"),
    (AdoptedPolicy(settings: ["mode=shadow"]), "can't be set for one"),
    (AdoptedPolicy(settings: ["hibernate.after"]), "a value is missing"),
  ])
  func `A mistake is refused with its name`(chosen: AdoptedPolicy, text: String) {
    let error = #expect(throws: SettingError.self) { try self.resolved(chosen) }
    #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
  }
}
