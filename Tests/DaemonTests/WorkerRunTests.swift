import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("A run of a worker")
struct WorkerRunTests {
  private func runtime() -> WorkerRuntime {
    WorkerRuntime(
      configuration: WorkerConfiguration(
        name: "web", command: ["sleep", "1"], directory: "/", importance: 0,
        policy: LifecyclePolicy()),
      environment: [:], isDeclared: true)
  }

  @Test("leaves nothing of itself to the next one")
  func nothingIsLeft() {
    let runtime = runtime()
    let before = runtime.profile
    runtime.asleepSince = .zero
    runtime.watchdogInterval = .seconds(7)
    runtime.endRun()
    #expect(runtime.profile == before)
    #expect(runtime.asleepSince == nil && runtime.watchdogInterval == nil)
  }

  @Test("shows which keys of its configuration it doesn't have yet")
  func changed() {
    let runtime = runtime()
    #expect(runtime.keysChangedSinceLaunch.isEmpty, "it doesn't run")
    runtime.launched = runtime.configuration
    runtime.configuration.command = ["sleep", "2"]
    runtime.configuration.importance = 5
    #expect(runtime.keysChangedSinceLaunch == ["command"])
    runtime.endRun()
    #expect(runtime.keysChangedSinceLaunch.isEmpty)
  }

  @Test("hears nothing of an operation after another has begun")
  func operations() {
    var count = OperationCount()
    let first = count.begin()
    #expect(count.isLatest(first))
    let second = count.begin()
    #expect(!count.isLatest(first) && count.isLatest(second))
  }
}
