import Control
import Hibernation
import Lifecycle
import Testing

@testable import Daemon

extension ExternalAdoptionTests {
  @Test func `A running external worker is released at once, and its files are removed`() throws {
    try adopt()
    let heard = world.askRelease()
    #expect(heard.responses.map(\.result) == [.done])
    #expect(text(heard) == "web is no longer managed")
    #expect(world.looks.forgotten == ["web"] && world.recorded() == nil)
    #expect(world.events.suffix(1) == ["released"] && world.workers.count == 0)
  }

  @Test func `Memory in the image of a trim is moved back before a release`() throws {
    for isFilled in [true, false] {
      try adopt()
      let sleep = try #require(world.workers[web]?.sleep)
      sleep.missing = MissingBytes(1 << 20, isTrimmed: true)
      let heard = world.askRelease()
      #expect(heard.responses.isEmpty && !world.events.contains("released"))
      if isFilled { sleep.missing = nil }
      world.driver.send(
        isFilled ? .filled(web, swapped: .zero) : .fillFailed(web, "its image can't be read"))
      #expect(heard.responses.map(\.result) == [isFilled ? .done : .failed])
      #expect(world.workers.count == (isFilled ? 0 : 1))
      world.base.notes.forget()
    }
    #expect(externals.refusalToSuspend(web) == nil, "it continues as before")
  }

  @Test(arguments: [true, false])
  func `A sleeping external worker is released if it could be woken`(isWoken: Bool) throws {
    try adopt(.hibernated)
    let heard = world.askRelease()
    #expect(heard.responses.isEmpty && world.state() == .resuming)
    world.driver.send(
      isWoken
        ? .resumed(web, .zero) : .resumeFailed(web, "its image can't be read", intact: true))
    #expect(heard.responses.map(\.result) == [isWoken ? .done : .failed])
    #expect((world.workers[web] == nil) == isWoken && world.events.contains("released") == isWoken)
    #expect(text(heard).contains("its image can't be read") != isWoken)
    #expect(externals.refusalToSuspend(web) == nil, "it continues as before")
  }

  @Test func `Two requests to release a worker are answered, and it is released once`() throws {
    try adopt(.suspended)
    let first = Heard()
    let request = ControlRequest(id: 8, verb: .release, worker: "web")
    externals.release(
      ControlCall(request: request) { [self] in
        first.responses.append($0)
        // Another process is adopted under the name before the second answer.
        do { try adopt() } catch { Issue.record(error) }
      })
    let second = world.askRelease()
    // The answers wait for the disk.
    world.base.saved.isSaved = false
    world.driver.send(.resumed(web, .zero))
    #expect(first.responses.isEmpty && second.responses.isEmpty)
    world.base.saved.save()
    #expect(first.responses.map(\.result) == [.done])
    #expect(second.responses.map(\.result) == [.done])
    #expect(world.events.count { $0 == "released" } == 1)
    #expect(world.workers[web] != nil, "the second one is another worker")
  }

  @Test func `A release of an ended worker keeps no later one of its name awake`() throws {
    try adopt(.hibernated)
    let heard = world.askRelease()
    // The answer to the wake waits for the disk.
    world.base.saved.isSaved = false
    world.driver.send(.resumed(web, .zero))
    externals.externalRootDidEnd(try #require(world.workers[web]))
    #expect(externals.refusalToSuspend(web) == nil)
    try adopt()
    world.base.saved.save()
    #expect(heard.responses.map(\.result) == [.done])
    #expect(world.workers[web] != nil && externals.refusalToSuspend(web) == nil)
  }

  @Test func `An unknown worker, or one of the daemon's own, isn't released`() {
    #expect(world.askRelease(nil).responses.first?.result == .badRequest)
    #expect(world.askRelease("nothing").responses.first?.result == .unknownWorker)
    world.workers[WorkerID("db")] = .forTest("db")
    #expect(world.askRelease("db").responses.first?.result == .refused)
    #expect(world.events.isEmpty)
  }

  @Test func `After a release a name that a reload declared is the configuration's`() throws {
    try adopt()
    world.workers[web]?.isDeclared = true
    let first = try #require(world.workers[web])
    _ = world.askRelease()
    let second = try #require(world.workers[web])
    #expect(second !== first && second.isDeclared && second.external == nil)
    #expect(world.state() == .terminated && second.environment["HOME"] == "/root")
    world.base.supervision.removeWorker(web)
    world.driver.send(.removed(web))
    try adopt()
    let third = try #require(world.workers[web])
    third.isDeclared = true
    externals.externalRootDidEnd(third)
    let fourth = try #require(world.workers[web])
    #expect(fourth !== third && fourth.external == nil && world.state() == .terminated)
  }
}
