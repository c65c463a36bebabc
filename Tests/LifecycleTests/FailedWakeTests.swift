import Lifecycle
import Policy
import Testing

@Suite("Hibernation of a worker that couldn't be woken")
struct FailedWakeTests {
  @Test("`hibernate` after a failed wake reports the failure instead of a success")
  func answer() throws {
    var world = World()
    let web: WorkerID = "web"
    world.add(web)
    world.obey(world.ask(.start, web))
    world.obey(world.ask(.hibernate, web))
    try #require(world.engine.state(of: web) == .hibernated)
    world.ask(.wake, web)
    world.send(.resumeFailed(web, "no memory", intact: true))
    try #require(world.engine.state(of: web) == .hibernated)
    world.ask(.hibernate, web)
    let answer = try #require(world.answers[world.requests]?.first)
    #expect(answer.code == .failed)
    #expect(answer.text.contains("the last wake failed: "), "\(answer.text)")
    #expect(answer.text.contains("no memory"), "\(answer.text)")
  }
}
