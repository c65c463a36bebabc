import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import Testing

@testable import Daemon

@Suite("Workers that an earlier daemon has left") struct SurvivorAdoptionTests {
  private let world = SurvivorWorld()
  private let web = WorkerID("web")
  private static let image = ImageOnDisk(path: "/images/web.image")

  private static func failure(_ aftermath: HibernationError.Aftermath) -> SurvivorRecovery {
    SurvivorRecovery(
      result: .failure(HibernationError(.reading, "it is busy", aftermath: aftermath)))
  }

  private func adopt() { world.adoption.adoptSurvivors() }
  private func recovered(_ name: String = "web", _ memory: ByteCount = .zero) {
    world.host.recovered(name, SurvivorRecovery(result: .success(memory)))
  }

  // MARK: those that run

  @Test("A worker in an unknown state is recorded as resuming, woken, and runs in the background")
  func recovery() {
    world.declare(.forTest("web"))
    world.leave("web", "hibernated")
    adopt()
    #expect(world.state(of: "web") == .terminated && world.returning.isAdopting(web))
    #expect(
      world.host.calls == ["take over web", "save web resuming", "recover web", "remove orphans"])
    recovered("web", .megabytes(3))
    #expect(world.state(of: "web") == .background && !world.returning.isUnderWay)
    #expect(world.host.calls.suffix(2) == ["save web background", "web is back"])
    #expect(
      world.host.lines == [
        "web: adopted and woken, pid 4711, \(ByteCount.megabytes(3)) of memory restored"
      ])
  }

  @Test("A worker that was in the foreground returns there, and is recorded there")
  func front() {
    world.leave("web", "foreground")
    world.leave("old", "suspended") { $0.wasInFront = true }
    adopt()
    #expect(world.host.workers[web]?.returnsToFront == true)
    #expect(world.host.workers[WorkerID("old")]?.returnsToFront == true)
    recovered()
    #expect(world.state(of: "web") == .foreground)
    #expect(world.host.workers[web]?.returnsToFront == false)
    #expect(world.host.calls.contains("save web foreground"))
  }

  @Test("Requests wait until a worker is adopted, and are then performed once in their order")
  func requests() {
    world.leave("web")
    world.leave("other")
    #expect(!world.returning.whenBack(web) { Issue.record("it isn't being adopted yet") })
    adopt()
    var performed: [Int] = []
    for number in 1...3 {
      let isWaiting = world.returning.whenBack(web) {
        performed.append(number)
        // What it asks next doesn't wait any more.
        #expect(!world.returning.whenBack(web) { performed.append(-number) })
        #expect(world.state(of: "web") == .background)
      }
      #expect(isWaiting)
    }
    recovered("other")
    #expect(performed.isEmpty)
    recovered()
    recovered()
    #expect(performed == [1, 2, 3])
    #expect(world.notes.events == ["adopted", "adopted"])
  }

  // MARK: those that sleep

  @Test("A sleeping worker that rests as recorded sleeps on, and its inputs are watched")
  func asleep() {
    world.declare(.forTest("web"))
    world.leave("web", "hibernated")
    world.host.rests["web"] = .asleep(.hibernated, Self.image)
    adopt()
    #expect(
      world.host.calls == [
        "take over web", "leave web asleep, /images/web.image", "watch web", "remove orphans",
      ])
    #expect(world.returning.isAdopting(web))
    world.host.watched("web", SurvivorWatch())
    #expect(world.state(of: "web") == .hibernated)
    #expect(
      world.host.calls.suffix(3)
        == ["save web hibernated", "look for web's inputs", "web is back"])
    #expect(world.host.lines == ["web: adopted, still hibernated, pid 4711"])
  }

  @Test(
    "A sleeping worker whose sockets can't be watched is woken if nothing else would wake it",
    arguments: [
      (ForegroundRules.Mode.manual, false, false), (.activity, false, true), (.manual, true, true),
    ])
  func unheard(mode: ForegroundRules.Mode, forbidsStrangers: Bool, isWoken: Bool) {
    world.declare(.forTest("web", mode: mode))
    world.host.forbidsStrangers = forbidsStrangers
    world.leave("web", "suspended")
    world.host.rests["web"] = .asleep(.suspended, nil)
    adopt()
    world.host.watched(
      "web", SurvivorWatch(refusal: SystemCallError("pidfd_getfd", on: "socket", code: EPERM)))
    #expect(world.notes.events.contains("wakeNeeded") == isWoken)
    #expect(world.state(of: "web") == (isWoken ? .resuming : .suspended))
  }

  // MARK: failures

  @Test("A worker that can't be adopted is reported, and keeps its record and its image")
  func cantBeTaken() {
    world.declare(.forTest("web"))
    world.leave("web", "hibernated")
    world.leave("other")
    world.host.refusals["web"] = "its cgroup was removed"
    adopt()
    #expect(
      world.host.lines == [
        "web: can't be adopted: its cgroup was removed; restart the daemon to try again, or end it "
          + "with `kill -9 4711`"
      ])
    #expect(!world.returning.isAdopting(web) && world.state(of: "web") == .terminated)
    // The others are.
    #expect(
      world.host.calls == [
        "take over other", "save other resuming", "recover other", "remove orphans",
      ])
  }

  @Test("A worker that has ended without a daemon, also at the last moment, is removed")
  func ended() {
    world.leave("web")
    world.leave("last")
    world.host.ended = ["web", "last"]
    adopt()
    #expect(world.host.calls == ["forget web", "forget last", "remove orphans"])
    #expect(world.host.lines.first == "web: ended while no daemon was running")
    #expect(world.notes.events.isEmpty && !world.returning.isUnderWay)
  }

  @Test("A hibernated worker without its image is terminated, and the engine can't wake it before")
  func withoutImage() {
    world.leave("web", "hibernated")
    world.host.rests["web"] = .withoutImage("/images/web.image")
    adopt()
    #expect(
      world.host.calls == [
        "take over web", "kill web", "save web background", "remove orphans",
      ])
    #expect(world.state(of: "web") == .suspended && !world.returning.isUnderWay)
    #expect(
      world.host.lines == [
        "web: terminated: its memory can't be restored: its image /images/web.image does not "
          + "exist any more (while reading)"
      ])
  }

  @Test("A worker whose memory can't be verified is ended, and its requests are performed")
  func unverifiable() {
    world.leave("web")
    adopt()
    var isPerformed = false
    #expect(world.returning.whenBack(web) { isPerformed = true })
    world.host.recovered("web", Self.failure(.unverifiable))
    #expect(world.host.calls.suffix(3) == ["kill web", "save web background", "web is back"])
    #expect(world.state(of: "web") == .suspended && isPerformed)
  }

  @Test("A worker that can't be woken yet sleeps on, with what is left of its image")
  func intact() {
    world.leave("web")
    world.leave("other")
    adopt()
    var recovery = Self.failure(.intact)
    world.host.recovered("other", recovery)
    recovery.image = Self.image
    world.host.recovered("web", recovery)
    #expect(world.notes.events.suffix(2) == ["adopted", "wakeNeeded"], "no input would wake it")
    #expect(world.state(of: "web") == .resuming && world.state(of: "other") == .resuming)
    #expect(world.host.calls.contains("web stays asleep, /images/web.image"))
    #expect(world.host.calls.contains("other stays asleep, no image"))
    // Its record stays as it is.
    #expect(!world.host.calls.contains { $0.hasPrefix("save web") && $0 != "save web resuming" })
    #expect(world.host.lines.last?.hasPrefix("web: adopted; it can't be woken yet") == true)
  }

  @Test("The end of a run during its adoption ends the adoption, and requests are performed")
  func endsMeanwhile() {
    world.declare(.forTest("web"))
    world.declare(.forTest("sleeper"))
    world.leave("web")
    world.leave("sleeper", "suspended")
    world.host.rests["sleeper"] = .asleep(.suspended, nil)
    adopt()
    var performed: [String] = []
    for name in ["web", "sleeper"] {
      #expect(world.returning.whenBack(WorkerID(name)) { performed.append(name) })
    }
    world.host.recovered("web", nil)
    world.host.watched("sleeper", nil)
    #expect(performed == ["web", "sleeper"] && !world.returning.isUnderWay)
    #expect(!world.notes.events.contains("adopted"))
    #expect(world.state(of: "web") == .terminated)
  }

  @Test("A worker that a reload has removed meanwhile isn't added to the engine again")
  func removedMeanwhile() {
    world.leave("web")
    world.leave("sleeper", "suspended")
    world.host.rests["sleeper"] = .asleep(.suspended, nil)
    adopt()
    for name in ["web", "sleeper"] { world.host.workers[WorkerID(name)] = nil }
    recovered()
    world.host.watched("sleeper", SurvivorWatch())
    #expect(world.notes.events.isEmpty && !world.returning.isUnderWay)
  }

  @Test("A very long adoption is logged once, delays no other, and counts when it ends")
  func overdue() {
    world.leave("web")
    world.leave("other")
    adopt()
    recovered("other")
    var isPerformed = false
    #expect(world.returning.whenBack(web) { isPerformed = true })
    world.timers.advance(by: SurvivorAdoption.patience * 3)
    #expect(
      world.host.lines.last
        == "web: adopting it takes longer than \(SurvivorAdoption.patience.spoken); "
        + "requests that wait for it: 1")
    #expect(world.host.lines.count { $0.contains("takes longer") } == 1)
    #expect(world.state(of: "other") == .background && !isPerformed)
    recovered()
    #expect(world.state(of: "web") == .background && isPerformed)
  }

  @Test("A damaged record is reported, and so is a directory that can't be read")
  func damaged() {
    world.host.failures = [.damaged(path: "/workers/web.worker", .torn)]
    world.leave("other")
    adopt()
    #expect(world.host.lines.first?.hasPrefix("/workers/web.worker is damaged") == true)
    #expect(world.host.calls.first == "take over other")

    let blind = SurvivorWorld()
    blind.leave("web")
    blind.host.unusable = SystemCallError("opendir", on: "/workers", code: EIO)
    blind.adoption.adoptSurvivors()
    #expect(
      blind.host.lines.first?.hasPrefix("can't look for workers of an earlier daemon") == true)
    // No image is taken for an orphan's.
    #expect(blind.host.calls.isEmpty)
  }
}
