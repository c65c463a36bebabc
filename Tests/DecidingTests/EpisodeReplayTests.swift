import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Journal

private let policies = ["standard", "server", "developer", "ios-5"]

@Suite("Journals of episodes in which workers were terminated in vain") struct EpisodeReplayTests {
  private static func policy(_ name: String) throws -> LifecyclePolicy {
    try #require(PolicyLibrary.builtIn.load(name).value)
  }

  @Test(
    "No worker is terminated in such an episode, and a replay of its journal decides the same",
    arguments: ShortageEpisode.allCases, policies)
  func recorded(episode: ShortageEpisode, policy: String) throws {
    let recording = try EpisodeJournal(episode, Self.policy(policy))
    #expect(recording.ends.isEmpty)
    switch episode {
    case .stallsWithoutShortage, .flappingStalls: #expect(recording.highest <= .warning)
    case .foreignHog: #expect(recording.highest == .critical)
    case .jumpToCritical, .smallContainer:
      #expect(recording.highest == .critical && recording.hibernations > 0)
    }
    var player = JournalPlayer()
    var check = DeterminismCheck()
    var ended: [WorkerID] = []
    player.play(recording.journal) { step, _ in
      check.visit(step)
      for case .transition(let move) in step.directives where move.to == .terminating {
        ended.append(move.worker)
      }
    }
    #expect(player.problems.isEmpty && check.events >= 150, "\(player.problems)")
    #expect(check.differingEvents == 0, "\(check.differences)")
    #expect(ended.isEmpty)
  }

  @Test(
    "No other shipped policy would have terminated a worker in an episode that no worker causes",
    arguments: ShortageEpisode.allCases.filter(\.isIndependentOfWorkers), policies)
  func otherPolicies(episode: ShortageEpisode, policy: String) throws {
    let recording = try EpisodeJournal(episode, Self.policy("ios-5"))
    var model = CostModel()
    var first = JournalPlayer()
    first.play(recording.journal) { step, engine in model.visit(step, engine) }
    var other = try WhatIf(policy: Self.policy(policy), model: model)
    var second = JournalPlayer()
    second.play(recording.journal) { step, engine in other.visit(step, engine) }
    other.finish()
    let tallies = other.other.tallies.values
    #expect(tallies.count == EpisodeJournal.sizes.count)
    #expect(tallies.allSatisfy { $0.memoryTerminations == 0 })
  }
}
