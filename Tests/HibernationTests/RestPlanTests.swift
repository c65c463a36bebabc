import Testing

@testable import Hibernation

/// What is kept of a sleeping worker, and what becomes of it.
struct RestPlanTests {
  private static let mark = ImageMark(
    id: ImageID(words: (1, 2)), indexChecksum: 3, fileLength: 4)
  private static let image = RestingImage(
    path: "/image", expecting: .image(mark), restore: RestorePlan(lazy: "it is faster"))

  @Test("Only a worker whose memory is in an image has an image")
  func images() {
    #expect(RestPlan.thaw(mayBeStopped: true).imagePath == nil)
    #expect(RestPlan.image(Self.image).imagePath == "/image")
    #expect(RestPlan.image(Self.image).imageMark == Self.mark)
    #expect(RestPlan.recover(path: "/image", expecting: .hibernated).imagePath == "/image")
    #expect(RestPlan.recover(path: "/image", expecting: .hibernated).imageMark == nil)
    #expect(RestPlan.recover(path: "/image", expecting: .image(Self.mark)).imageMark == Self.mark)
    // An old one may lie there.
    #expect(RestPlan.recover(path: "/image", expecting: .unknown).imagePath == nil)
  }

  @Test("A hibernation that is tried stops only a worker that was to be thawed")
  func stopping() {
    var plan = RestPlan.thaw(mayBeStopped: false)
    plan.mayStop()
    #expect(plan == .thaw(mayBeStopped: true))
    plan = .recover(path: "/image", expecting: .unknown)
    plan.mayStop()
    #expect(plan == .recover(path: "/image", expecting: .unknown))
  }

  @Test("An image that is found keeps the mark that was noted of it")
  func recovering() {
    #expect(
      RestPlan.image(Self.image).recovering(from: "/image")
        == .recover(path: "/image", expecting: .image(Self.mark)))
    #expect(
      RestPlan.thaw(mayBeStopped: true).recovering(from: "/image")
        == .recover(path: "/image", expecting: .hibernated))
  }

  @Test("A worker whose memory is found in place has no image any more")
  func inPlace() {
    var plan = RestPlan.image(Self.image)
    plan.hasNoImage()
    #expect(plan == .thaw(mayBeStopped: true))
    plan = .recover(path: "/image", expecting: .image(Self.mark))
    plan.hasNoImage()
    #expect(plan == .recover(path: "/image", expecting: .unknown))
    plan = .thaw(mayBeStopped: false)
    plan.hasNoImage()
    #expect(plan == .thaw(mayBeStopped: false))
  }

  @Test("The caller's way of restoring replaces the planned one, and the image stays the same")
  func otherMode() {
    let eager = Self.image.restored(.eager)
    #expect(eager.path == "/image" && eager.expectation == .image(Self.mark))
    #expect(!eager.restore.isLazy && eager.restore.reason.isEmpty)
    #expect(Self.image.restore.isLazy)
  }
}
