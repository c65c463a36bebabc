import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import Testing

@testable import Daemon

extension ExternalAdoptionTests {
  @Test("A running external worker is released at once, and its files are removed")
  func releaseRunning() throws {
    try adopt()
    let heard = askRelease()
    #expect(heard.responses.map(\.result) == [.done])
    #expect(text(heard) == "web is no longer managed")
    #expect(world.calls.suffix(2) == ["let go of web", "remove web"])
    #expect(world.notes.events.suffix(1) == ["released"] && world.workers.count == 0)
  }

  @Test("A sleeping external worker is woken before it is released")
  func releaseAsleep() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    #expect(heard.responses.isEmpty && world.calls.last == "wake web")
    move(to: .background)
    world.woken()
    #expect(heard.responses.map(\.result) == [.done] && world.workers.count == 0)
  }

  @Test("An external worker that can't be woken isn't released")
  func cantBeWoken() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    world.woken(.failed, "web: its image can't be read")
    #expect(heard.responses.map(\.result) == [.failed])
    #expect(text(heard) == "web: its image can't be read")
    #expect(world.workers[web] != nil && !world.notes.events.contains("released"))
    #expect(externals.refusalToSuspend(web) == nil, "it continues as before")
  }

  @Test("Two requests to release a worker are both answered, and it is released once")
  func releaseTwice() throws {
    try adopt(.suspended)
    let (first, second) = (askRelease(), askRelease())
    move(to: .background)
    world.woken()
    // Another process is adopted under its name before the second answer.
    try adopt()
    world.woken()
    #expect(first.responses.map(\.result) == [.done])
    #expect(second.responses.map(\.result) == [.done])
    #expect(world.notes.events.count { $0 == "released" } == 1)
    #expect(world.workers[web] != nil, "the second one is another worker")
  }

  @Test("The release of a worker that ended meanwhile holds no later worker of its name awake")
  func endsWhileReleased() throws {
    try adopt(.hibernated)
    let heard = askRelease()
    externals.externalRootHasEnded(try #require(world.workers[web]))
    #expect(externals.refusalToSuspend(web) == nil)
    try adopt()
    // The answer to the wake has waited for the disk.
    world.woken()
    #expect(heard.responses.map(\.result) == [.done])
    #expect(world.workers[web] != nil && externals.refusalToSuspend(web) == nil)
  }

  @Test("An unknown worker, or one of the daemon's own, isn't released")
  func notExternal() {
    #expect(askRelease(nil).responses.first?.result == .badRequest)
    #expect(askRelease("nothing").responses.first?.result == .unknownWorker)
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(askRelease("db").responses.first?.result == .refused)
    #expect(world.calls.isEmpty)
  }

  @Test(
    "A name that a reload has declared meanwhile is the configuration's after the release and the end"
  )
  func declaredMeanwhile() throws {
    try adopt()
    world.workers[web]?.isDeclared = true
    _ = askRelease()
    #expect(world.calls.suffix(2) == ["remove web", "introduce web"])
    try adopt()
    let runtime = try #require(world.workers[web])
    runtime.isDeclared = true
    externals.externalRootHasEnded(runtime)
    #expect(world.calls.suffix(2) == ["remove web", "introduce web"])
  }

  // MARK: its end
}
