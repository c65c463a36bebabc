import Lifecycle
import Policy
import Testing

@Suite("Trims by userfaultfd") struct TrimLossTests {
  private func imageWorld(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    trimWorld {
      $0.trim.every = .seconds(10)
      change(&$0)
    }
  }

  @Test("A lost trim is explained with its time and its reason, and with the next trim")
  func explained() {
    var world = imageWorld()
    world.pass(.seconds(300))
    world.trimmed(to: 4, inImage: true)
    world.pass(.seconds(1))
    world.send(.trimLost(web, "it forks often"))
    world.measure(resident: 52)
    world.pass(.seconds(20))
    #expect(
      world.trim?.sentence
        == "its memory came back 20 s ago, because it forks often; the next trim is in 40 s at the "
        + "earliest")
    #expect(world.trim?.obstacles.map(\.code) == ["lost_lately"])
    #expect(world.trim?.cameBack == .zero && world.trim?.interval == .seconds(10))
    #expect(world.engine.swapped(of: web) == .zero)
  }

  @Test("After each loss in a row the next trim comes later, until a trim isn't lost")
  func pauses() {
    var world = imageWorld()
    world.pass(.seconds(300))
    for pause in [60, 120, 240] {
      world.trimmed(to: 4, inImage: true)
      world.send(.trimLost(web, "it forks often"))
      world.measure(resident: 52)
      #expect(world.pass(.seconds(pause - 1)).deeds.isEmpty)
      #expect(world.pass(.seconds(1)).deeds == ["trim web"])
    }
    world.trimmed(to: 4, inImage: true)
    world.pass(.seconds(40))
    world.measure(resident: 20)
    #expect(world.trim?.underWay == .trim)
    world.trimmed(to: 4, inImage: true)
    world.send(.trimLost(web, "it forks often"))
    world.measure(resident: 52)
    #expect(world.pass(.seconds(59)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["trim web"])
  }

  @Test("The ladder doesn't trim a worker that has just lost a trim, and a request does")
  func ladder() {
    var world = imageWorld {
      $0.trim.after = nil
      $0.ladder.warning = [.trim]
    }
    #expect(world.read(available: 120).deeds == ["trim web"])
    world.trimmed(to: 4, inImage: true)
    world.send(.trimLost(web, "it forks often"))
    world.measure(resident: 52)
    world.pass(.seconds(30))
    #expect(world.read(available: 120).deeds.isEmpty)
    #expect(world.trim?.sentence.contains("because it forks often") == true)
    #expect(world.ask(.trim, web).deeds == ["trim web"])
  }

  @Test("A loss without a trim, or after a fill, changes nothing")
  func ignored() {
    var world = imageWorld()
    world.send(.trimLost(web, "it forks often"))
    #expect(world.trim?.loss == nil)
    world.pass(.seconds(300))
    world.trimmed(to: 4, inImage: true)
    world.obey(world.ask(.fill, web))
    world.send(.trimLost(web, "it forks often"))
    #expect(world.trim?.loss == nil && world.trim?.isFilled == true)
  }

  @Test("A suspension keeps a trim and what has come back since, and a hibernation ends it")
  func asleep() {
    for isInImage in [true, false] {
      var world = imageWorld {
        $0.background.suspendAfter = nil
        $0.trim.every = .seconds(600)
      }
      world.pass(.seconds(300))
      world.trimmed(to: 4, inImage: isInImage)
      world.obey(world.ask(.suspend, web))
      #expect(world.state(web) == .suspended)
      world.measure(resident: 8)
      #expect(world.trim?.last != nil && world.engine.swapped(of: web) == .megabytes(44))
      #expect(world.trim?.cameBack == .megabytes(4) && world.trim?.interval == .seconds(600))
      #expect(
        world.trim?.sentence.hasSuffix("only running workers are trimmed, and it is suspended")
          == true)
      world.obey(world.ask(.hibernate, web))
      #expect(world.state(web) == .hibernated)
      #expect(world.trim?.last == nil && world.engine.swapped(of: web) == .zero)
    }
  }

  @Test("With encrypted images, trims by userfaultfd alone are refused, and others are possible")
  func encrypted() {
    var world = imageWorld {
      $0.hibernate.encrypt = true
      $0.trim.mechanism = .userfaultfd
    }
    #expect(world.ask(.trim, web).deeds == ["refused"])
    #expect(world.pass(.seconds(3000)).deeds.isEmpty)
    #expect(world.trim?.obstacles.first?.code == "encrypted")
    #expect(world.trim?.sentence.contains("hibernate.encrypt is true") == true)
    var other = imageWorld { $0.hibernate.encrypt = true }
    #expect(other.ask(.trim, web).deeds == ["trim web"])
  }

  @Test("The result of a trim names the image, and swap only if some memory is there")
  func sentence() {
    var result = TrimResult(
      residentBefore: .megabytes(40), residentAfter: .megabytes(4), swapped: .megabytes(36),
      inImage: .megabytes(36), duration: .milliseconds(30))
    #expect(result.sentence == "trimmed: 40 MB → 4 MB in RAM, 36 MB in its image, 30 ms")
    result.inImage = .megabytes(30)
    #expect(
      result.sentence == "trimmed: 40 MB → 4 MB in RAM, 30 MB in its image, 6 MB in swap, 30 ms")
  }
}
