import Lifecycle
import Policy
import Testing

private let old = WorkerID("old")

@Suite("Disk limits of hibernation")
struct DiskTests {
  private func reading(
    free: Int64 = 900, images: Int64 = 0, written: Int64 = 0
  ) -> DiskReading {
    DiskReading(
      total: .megabytes(1000), free: .megabytes(free), images: .megabytes(images),
      writtenToday: .megabytes(written))
  }

  private func world() -> World {
    var policy = LifecyclePolicy()
    policy.hibernate.after = .zero
    policy.hibernate.cooldown = .zero
    policy.hibernate.disk.budget = .megabytes(100)
    policy.hibernate.disk.minFreePercent = 10
    policy.hibernate.disk.dailyWrites = .megabytes(500)
    var world = World(policy)
    world.add(web)
    return world
  }

  @Test(
    "A disk limit keeps a worker suspended, and the verdict shows the numbers",
    arguments: [
      (
        95, 900, 0,
        "images take 95 MB of disk; 8 MB more would exceed hibernate.disk.budget, 100 MB"
      ),
      (0, 105, 0, "the disk has 105 MB free; 8 MB less would fall below hibernate.disk.min_free"),
      (
        0, 900, 495,
        "495 MB were written to images in 24 h; 8 MB more would exceed hibernate.disk.daily_writes"
      ),
    ] as [(Int64, Int64, Int64, String)])
  func limits(images: Int64, free: Int64, written: Int64, text: String) {
    var world = world()
    world.send(.disk(reading(free: free, images: images, written: written)))
    world.bring(web, to: .suspended)
    #expect(world.state(web) == .suspended)
    #expect(world.verdict(web)?.hasPrefix(text) == true, "\(world.verdict(web) ?? "")")
    world.obey(world.ask(.hibernate, web))
    #expect(world.answers[world.requests]?.first?.code == .refused)
    world.obey(world.send(.disk(reading())))
    #expect(world.state(web) == .hibernated, "as soon as there is room")
  }

  @Test func `The disk budget counts images that were written since the last reading`() {
    var world = world()
    world.send(.disk(reading(images: 80)))
    world.add(old, size: .megabytes(15), in: .hibernated)
    world.obey(world.ask(.foreground, web))
    world.obey(world.ask(.start, web))
    world.bring(web, to: .suspended)
    #expect(world.state(web) == .hibernated, "3 MB of image and 8 MB fit")
    world.obey(world.ask(.terminate, old))
    let third = WorkerID("third")
    world.add(third, size: .megabytes(16), in: .suspended)
    #expect(world.verdict(third)?.contains("hibernate.disk.budget") == true)
  }

  @Test("An image's expected size follows from the compression of the last one, plus a quarter")
  func learned() {
    var world = world()
    world.bring(web, to: .hibernated)
    world.obey(world.ask(.wake, web))
    // The last image was a fifth of the footprint: 8 MB are expected to need a fifth and a quarter
    // more, 2 MB.
    world.send(.disk(reading(images: 99)))
    world.obey(world.ask(.hibernate, web))
    #expect(world.verdict(web)?.hasPrefix("images take 99 MB of disk; 2 MB more") == true)
    let trim = world.engine.diskObstacle(forTrimOf: web)
    #expect(trim?.hasPrefix("images take 99 MB of disk; 3.6 MB more") == true, "it is of lz4")
    #expect(world.state(web) == .suspended)
    world.obey(world.send(.disk(reading(images: 97))))
    #expect(world.state(web) == .hibernated)
  }

  @Test func `A worker that isn't woken for demote_after counts as suspended, and not earlier`() {
    var world = world()
    world.bring(web, to: .hibernated)
    world.pass(.seconds(86399))
    #expect(world.engine.snapshot(of: web, at: world.now)?.band == 75)
    world.pass(.seconds(1))
    #expect(world.engine.snapshot(of: web, at: world.now)?.band == 0)
    #expect(world.state(web) == .hibernated, "no worker is terminated without pressure")
    world.obey(world.ask(.wake, web))
    world.obey(world.ask(.hibernate, web))
    #expect(world.engine.snapshot(of: web, at: world.now)?.band == 75)
  }

  @Test func `Under pressure, the image of a demoted worker makes room for others`() {
    var world = world()
    world.add(old, in: .hibernated)
    world.pass(.seconds(86400))
    world.send(.disk(reading(images: 93)))
    world.bring(web, to: .suspended)
    #expect(world.state(web) == .suspended)
    let deeds = world.read(available: 120).deeds
    #expect(deeds == ["kill old"])
    world.send(.exited(old, .signaled(9)))
    world.send(.disk(reading(images: 90)))
    #expect(world.state(web) == .hibernating)
  }

  @Test(
    "No demoted worker is terminated if its image can't make enough room on the disk",
    arguments: [(95, 900), (10, 0)] as [(Int64, Int64)])
  func noRoom(images: Int64, free: Int64) {
    var world = world()
    world.add(old, in: .hibernated)
    world.pass(.seconds(86400))
    world.send(.disk(reading(free: free, images: images)))
    world.bring(web, to: .suspended)
    #expect(world.read(available: 120).deeds == [])
    #expect(world.state(old) == .hibernated)
  }
}
