import Deciding
import Lifecycle
import Policy
import PolicyFile
import Simulation
import TestSupport
import Testing

@Suite("Suggested changes of a policy") struct PolicySearchTests {
  private func search(
    _ trace: Trace, _ policy: LifecyclePolicy, only: Set<WorkerID>? = nil,
    budget: Int? = PolicySearch.defaultBudget
  ) throws -> PolicySuggestions {
    var search = PolicySearch(
      try FleetJournal(trace, policy: policy).history(), only: only, budget: budget)
    return try search.run()
  }

  /// Two idle services that are used every 20 min.
  private let idle = periodic([("api", 120, 1200), ("web", 80, 1500)], hours: 5)

  @Test("The suggestion for a policy that hibernates after an hour is to hibernate sooner")
  func hibernatesTooLate() throws {
    let result = try search(idle, served { $0.hibernate.after = .seconds(3600) })
    let best = try #require(result.suggestions.first)
    #expect(result.code == "changes" && best.code == "best")
    #expect(best.changes.contains { $0.key == "hibernate.after" && $0.from == "1h" })
    #expect(best.numbers.averageFootprint < result.now.averageFootprint / 2)
    #expect(best.set.allSatisfy { $0.contains("=") })
    #expect(best.yaml.first?.hasPrefix("policy_overrides: { ") == true)
    #expect(best.workers.map(\.worker) == ["api", "web"])
    #expect(best.workers.allSatisfy { $0.byteHours < 0 && $0.wakes >= 0 })
    #expect(result.suggestions.count <= 3)
  }

  @Test("The suggestion for a limit that leaves the largest worker in memory is a higher one")
  func limitOfSize() throws {
    let trace = periodic([("large", 600, 3600), ("small", 20, 3600)], hours: 6)
    let result = try search(
      trace,
      served {
        $0.foreground.idleAfter = .seconds(5)
        $0.background.suspendAfter = .seconds(5)
        $0.hibernate.after = .seconds(5)
        $0.hibernate.maxFootprint = .megabytes(256)
      })
    let best = try #require(result.suggestions.first)
    #expect(best.changes.map(\.key) == ["hibernate.max_footprint"])
    #expect(best.workers.first?.worker == "large")
  }

  @Test(.enabled(if: Nightly.runs, "only in make test-all"))
  func `A policy that is already the best of those tried gets no suggestion`() throws {
    let result = try search(
      idle,
      served {
        $0.foreground.idleAfter = .seconds(5)
        $0.background.suspendAfter = .seconds(5)
        $0.hibernate.after = .seconds(5)
        $0.hibernate.cooldown = .seconds(5)
      })
    #expect(result.code == "no_change" && result.suggestions.isEmpty)
    #expect(result.tried > 20)
  }

  @Test("No suggestion makes a worker that is used every minute hibernate in between")
  func waitsCount() throws {
    let busy = periodic([("api", 60, 45)], hours: 3)
    let result = try search(busy, served { $0.hibernate.after = .seconds(3600) })
    #expect(result.suggestions.isEmpty, "\(result.suggestions.first?.set ?? [])")
  }

  @Test(
    "An earlier trim is suggested if the recorded trims say that it saves memory, and only then",
    arguments: [(0.1, 0.1, true), (0.5, 0.9, false)])
  func trims(left: Double, returned: Double, isSuggested: Bool) throws {
    let late = served { $0.trim.after = .seconds(3600) }
    let journal = try FleetJournal(periodic([("api", 100, 20)], hours: 5), policy: late) {
      $0.trim = .init(left: left, returned: returned)
    }
    var search = PolicySearch(journal.history())
    let result = try search.run()
    let best = result.suggestions.first
    #expect((best?.changes.map(\.key) == ["trim.after"]) == isSuggested, "\(best?.set ?? [])")
    guard let best else { return }
    #expect(best.numbers.trims > 0 && best.numbers.savedByteHours > result.now.savedByteHours)
  }

  @Test("Suggestions for named workers change only these, with a line of YAML for each")
  func onlyForWorkers() throws {
    let result = try search(
      idle, served { $0.hibernate.after = .seconds(3600) }, only: [WorkerID("web")])
    let best = try #require(result.suggestions.first)
    #expect(result.only == ["web"])
    #expect(best.workers.map(\.worker) == ["web"])
    #expect(best.yaml.first?.hasPrefix("workers: { web: { policy: { ") == true)
  }

  @Test("Shipped policies are weighed over the same history, and the clearly better one is named")
  func otherPolicies() throws {
    let late = served { $0.hibernate.after = .seconds(3600) }
    let soon = served {
      $0.name = "soon"
      $0.hibernate.after = .seconds(30)
    }
    let history = try FleetJournal(idle, policy: late).history()
    var search = PolicySearch(history, others: [late, soon])
    let result = try search.run()
    #expect(result.policies?.map(\.name) == ["soon"])
    #expect(result.bestPolicy?.yaml == "policy: soon")
    #expect((result.bestPolicy?.numbers.averageFootprint ?? .max) < result.now.averageFootprint)
    var named = PolicySearch(history, only: [WorkerID("web")], others: [soon])
    #expect(try named.run().policies == nil)
    var worse = PolicySearch(
      try FleetJournal(idle, policy: soon).history(), others: [late])
    #expect(try worse.run().bestPolicy == nil)
  }

  @Test("A small budget of events makes the search shorter, and says over what it measured")
  func bounded() throws {
    let policy = served { $0.hibernate.after = .seconds(3600) }
    let result = try search(idle, policy, budget: 3_000)
    #expect(result.evaluatedHours < result.hours)
    #expect(result.suggestions.first?.changes.contains { $0.key == "hibernate.after" } == true)
    let whole = try search(idle, policy, budget: nil)
    #expect(whole.evaluatedHours == whole.hours)
  }

  @Test(.enabled(if: Nightly.runs, "only in make test-all"))
  func `The same history gives the same suggestions, whose settings --set takes`() throws {
    let journal = try FleetJournal(idle, policy: served { $0.hibernate.after = .seconds(3600) })
    func run() throws -> PolicySuggestions {
      var search = PolicySearch(journal.history())
      return try search.run()
    }
    let (first, second) = (try run(), try run())
    #expect(first.suggestions.map(\.numbers) == second.suggestions.map(\.numbers))
    #expect(first.suggestions.map(\.set) == second.suggestions.map(\.set))
    for suggestion in first.suggestions {
      #expect(throws: Never.self) { try PolicySettings(suggestion.set) }
    }
  }
}
