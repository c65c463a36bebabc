import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A file can't be opened at any moment of a wake. The worker has to keep its memory, whatever else
/// fails.
@Suite(.serialized, .needsCgroup)
struct ShortageTests {
  private static let codes = [EMFILE, ENFILE, ENOMEM, EINTR, EIO]

  private func sleep(
    _ victim: Victim, _ hibernator: Hibernator, at path: String, lazy: Bool = false
  ) throws {
    try hibernator.awaitFill(of: victim.target.name)
    try victim.suspend()
    _ = try hibernator.hibernate(
      HibernationRequest(victim.target, to: path, restore: lazy ? .lazy : .eager))
  }

  /// Wakes a worker again, as the daemon does after a wake that has failed.
  private func wakeAgain(
    _ victim: Victim, _ hibernator: Hibernator, from restingImage: RestingImage,
    after error: HibernationError
  ) throws {
    #expect(error.aftermath == .intact, "\(error)")
    if error.phase == .waking {
      try hibernator.recover(victim.target, from: restingImage.path)
    } else {
      try hibernator.resume(victim.target, from: restingImage)
    }
  }

  /// - Parameter wake: the wake, which runs with the injected fault.
  private func eachStep(
    lazy: Bool = false, _ wake: (Victim, Hibernator, RestingImage) throws -> Void
  ) throws {
    let hibernator = Hibernator()
    let victim = try Victim(ready: "layers", "64", parking: .frozen)
    let path = Fixture.imagePath()
    let restingImage = RestingImage(path: path, lazy ? .lazy(learns: true) : .eager)
    for step in 0... {
      try sleep(victim, hibernator, at: path, lazy: lazy)
      let fault = InjectedFault(Self.codes[step % Self.codes.count], at: step..<(step + 1))
      do { try fault.during { try wake(victim, hibernator, restingImage) } } catch {
        let failure = try #require(error as? HibernationError)
        try wakeAgain(victim, hibernator, from: restingImage, after: failure)
      }
      try #require(try victim.ask("verify") == "same", "\(fault.subjects.last ?? "")")
      if fault.subjects.count <= step {
        #expect(step > 5)
        break
      }
    }
    try hibernator.awaitFill(of: victim.target.name)
  }

  @Test("A wake that can't open a file at one of its steps leaves the worker asleep with its image")
  func eager() throws {
    try eachStep { victim, hibernator, restingImage in
      try hibernator.resume(victim.target, from: restingImage)
    }
  }

  @Test(.needsUserfaults)
  func `A lazy wake that can't open a file leaves the worker asleep, or fills it later`() throws {
    try eachStep(lazy: true) { victim, hibernator, restingImage in
      try hibernator.resume(victim.target, from: restingImage)
    }
  }

  @Test("A new daemon that can't open a file at one of its steps leaves the worker asleep")
  func start() throws {
    try eachStep { victim, hibernator, restingImage in
      try hibernator.recover(victim.target, from: restingImage.path, expecting: .hibernated)
    }
  }

  @Test("A hibernation that can't open files, nor at once undo what it did, loses no memory")
  func undone() throws {
    let hibernator = Hibernator()
    let victim = try Victim(ready: "layers", "64", parking: .frozen)
    let path = Fixture.imagePath()
    for step in 0... {
      try victim.suspend()
      let fault = InjectedFault(ENOMEM, at: step..<(step + 3))
      do {
        let request = HibernationRequest(victim.target, to: path, restore: .eager)
        try fault.during { _ = try hibernator.hibernate(request) }
        try hibernator.resume(victim.target, from: RestingImage(path: path, .eager))
      } catch {
        let failure = try #require(error as? HibernationError)
        try #require(failure.aftermath != .unverifiable, "\(step): \(failure)")
        _ = try hibernator.recover(victim.target, from: path)
      }
      try #require(try victim.ask("verify") == "same", "\(fault.subjects.last ?? "")")
      if fault.subjects.count <= step { return }
    }
  }

  @Test func `A step back is repeated while its failure may pass and the worker lives`() throws {
    let short = HibernationError(.reading, "no descriptor is free")
    var failures = 3
    try Operation.repeating(while: { true }) { () throws(HibernationError) in
      failures -= 1
      if failures > 0 { throw short }
    }
    #expect(failures == 0)
    var attempts = 0
    #expect(throws: HibernationError.self) {
      try Operation.repeating(for: .milliseconds(20), while: { true }) {
        () throws(HibernationError) in
        attempts += 1
        throw short
      }
    }
    #expect(attempts > 1)
    for (error, lives) in [
      (short, false), (HibernationError(.reading, "damaged", aftermath: .unverifiable), true),
    ] {
      var count = 0
      #expect(throws: HibernationError.self) {
        try Operation.repeating(while: { lives }) { () throws(HibernationError) in
          count += 1
          throw error
        }
      }
      #expect(count == 1)
    }
  }

  @Test("An image that can't be read for now isn't a damaged one; one that doesn't exist is lost")
  func reading() {
    for code in [EIO, EMFILE, ENFILE, ENOMEM, ESTALE, EACCES] {
      let error = SystemCallError("read", on: "image", code: code)
      #expect(HibernationError.isTransient(ImageError.unreadable(path: "image", error)))
    }
    let gone = SystemCallError("open", on: "image", code: ENOENT)
    #expect(!HibernationError.isTransient(ImageError.unreadable(path: "image", gone)))
    #expect(!HibernationError.isTransient(ImageError.damaged(path: "image", reason: "all")))
    #expect(!HibernationError.isTransient(SystemCallError("write", on: "memory", code: EFAULT)))
  }
}

/// The repeated steps of a fill, without a worker.
@Suite("Steps of a fill that are repeated") struct FillRetryTests {
  private static let shortage = SystemCallError("read", on: "userfaultfd", code: EMFILE)

  @Test("A step is repeated until it succeeds, and a delay that lasts is reported once")
  func repeats() throws {
    var reports: [HibernationError] = []
    let retry = FillRetry([try .current(of: getpid())]) { reports.append($0) }
    let end = Clocks.monotonic + 1_300_000_000
    let result = try retry.run { () throws(SystemCallError) in
      if Clocks.monotonic < end { throw Self.shortage }
      return 7
    }
    #expect(result == 7)
    #expect(reports.count == 1 && reports.allSatisfy { $0.aftermath == .intact })
  }

  @Test("A step of a worker that has ended, or that no repetition helps, fails at once")
  func ends() throws {
    let ended = FillRetry([ProcessIdentity(pid: getpid(), startTime: 1)]) { _ in }
    #expect(throws: Self.shortage) {
      try ended.run { () throws(SystemCallError) in throw Self.shortage }
    }
    let lives = FillRetry([try .current(of: getpid())]) { _ in }
    #expect(throws: ImageError.self) {
      try lives.run { () throws(ImageError) in throw .damaged(path: "image", reason: "all") }
    }
  }

  @Test func `A chunk that one thread couldn't read is the next one of another thread`() {
    var order = FillOrder([0, 1])
    #expect(order.claimNext() == 0)
    order.unclaim(0)
    #expect(order.claimNext() == 0 && order.claimNext() == 1 && order.claimNext() == nil)
    order.unclaim(1)
    #expect(order.claim(1) && order.claimNext() == nil)
  }
}
