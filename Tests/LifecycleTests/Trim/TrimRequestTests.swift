import Lifecycle
import Policy
import Testing

@Suite("Requests to trim and to fill")
struct TrimRequestTests {
  private func world(canShed: Bool = false) -> World {
    var policy = LifecyclePolicy()
    policy.trim.after = nil
    policy.foreground.max = nil
    var world = World(policy)
    world.add(web, size: .megabytes(52), canShed: canShed, canAnswer: canShed, in: .foreground)
    world.send(.footprint(web, .megabytes(52)))
    return world
  }

  private func codes(_ world: World) -> [Answer.Code] {
    world.answers.filter { $0.key > 1 }.sorted { $0.key < $1.key }.flatMap { $0.value.map(\.code) }
  }

  @Test("All requests for a trim that is under way get its result, and a fill follows it")
  func several() {
    var world = world()
    #expect(world.ask(.trim, web).deeds == ["trim web"])
    #expect(world.ask(.trim, web).deeds.isEmpty)
    #expect(world.ask(.fill, web).deeds.isEmpty)
    #expect(world.trimmed(to: 4).deeds == ["done", "done", "fill web"])
    #expect(world.engine.swapped(of: web) == .megabytes(48))
    #expect(world.send(.filled(web, swapped: .zero)).deeds == ["done"])
    #expect(world.trim?.sentence.hasPrefix("filled 0 s ago") == true)
    #expect(codes(world) == [.done, .done, .done])
  }

  @Test("A trim waits for a worker that is freeing memory")
  func shedding() {
    var world = world(canShed: true)
    #expect(world.ask(.warn, web).deeds == ["shed web memoryWarning"])
    #expect(world.ask(.trim, web).deeds.isEmpty)
    world.send(.shedAnswered(web))
    let deeds = world.send(
      .shedFinished(web, before: .megabytes(52), after: .megabytes(40))
    ).deeds
    #expect(deeds == ["done", "trim web"])
  }

  @Test("A suspension waits for a trim, and says so")
  func suspension() {
    var world = world()
    world.obey(world.ask(.background, web))
    world.ask(.trim, web)
    #expect(world.ask(.suspend, web).deeds.isEmpty)
    #expect(world.engine.explanation(of: web)?.obstacles.map(\.code) == ["trimming"])
    #expect(world.trimmed(to: 4).deeds == ["done", "suspend web"])
    world.send(.suspended(web))
    #expect(codes(world) == [.done, .done, .done])
  }

  @Test("An end during a trim answers each request once", arguments: [true, false])
  func end(isRequested: Bool) {
    var world = world()
    world.ask(.trim, web)
    world.ask(.fill, web)
    if isRequested {
      world.obey(world.ask(.stop, web))
    } else {
      world.send(.exited(web, .signaled(11)))
    }
    world.trimmed(to: 4)
    #expect(codes(world) == [.failed, .failed] + (isRequested ? [.done] : []))
  }

  @Test("A request is answered if the outcome is lost")
  func lost() {
    var world = world()
    world.ask(.trim, web)
    #expect(world.pass(.seconds(60)).deeds == ["failed"])
    world.ask(.fill, web)
    #expect(world.pass(.seconds(60)).deeds == ["failed"])
    #expect(world.send(.filled(web, swapped: .zero)).deeds.isEmpty)
  }

  @Test("With trim.mechanism off a request is refused, and memory in swap can be filled")
  func off() {
    var world = trimWorld { $0.trim.mechanism = .off }
    #expect(world.ask(.trim, web).deeds == ["refused"])
    world.measure(resident: 20)
    #expect(world.ask(.fill, web).deeds == ["fill web"])
    world.send(.fillFailed(web, "its memory can't be read"))
    #expect(codes(world) == [.refused, .failed])
    #expect(world.pass(.seconds(3000)).deeds.isEmpty)
  }
}
