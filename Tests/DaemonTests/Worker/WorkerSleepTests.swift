import Hibernation
import Policy
import Testing

@testable import Daemon

@Suite("A worker's sleep") struct WorkerSleepTests {
  private let world: SleepWorld
  private let memory: FakeMemory
  private let sleep: WorkerSleep

  init() throws {
    world = try SleepWorld()
    memory = world.memory
    sleep = try world.makeSleep()
  }

  private static let image = ImageOnDisk(path: "/web.image", length: 100)

  private func putToSleep() {
    sleep.suspend()
    memory.stop(with: world.inputs)
    sleep.hibernate()
    memory.evict(to: "/web.image")
  }

  @Test func `Each step of a sleep is reported, and the resume uses the sleep's own image`() {
    putToSleep()
    #expect(sleep.resumeMethod.image?.path == "/web.image")
    sleep.resume()
    #expect(memory.asked == ["suspend", "hibernate", "restore /web.image"])
    #expect(sleep.isBusy)
    memory.restored?(.success(.forTest))
    #expect(world.named == ["suspended", "hibernated", "resumed"])
    #expect(sleep.resumeMethod.image == nil && !sleep.isBusy)
  }

  @Test(arguments: [false, true])
  func `A sleep begins when no question is open, unless inspected`(isInspected: Bool) throws {
    let world = try SleepWorld(.background)
    let (memory, sleep) = (world.memory, try world.makeSleep())
    let supervisor = FakeQuestions.supervisor(
      world.timers, world.driver, world.workers, FakeQuestions.World())
    let process = try #require(world.worker.process)
    // The question is never answered.
    let monitor = LivenessMonitor(
      Policy.Probe(.tcp(host: "127.0.0.1", port: 80)), timers: world.timers,
      question: QuietQuestion(to: world.worker, process, by: supervisor))
    world.worker.liveness = monitor
    monitor.runs(since: world.timers.now)
    for _ in 0..<600 where !world.worker.isAsked { world.timers.advance(by: .milliseconds(100)) }
    world.driver.request(.suspend, world.id) { _ in }
    world.driver.send(.fileLocks(world.id, held: 0))
    sleep.suspend()
    #expect(memory.asked.isEmpty)
    if isInspected { sleep.inspect() }
    world.worker.actionAfterQuestions?()
    #expect(memory.asked == [isInspected ? "inspect" : "suspend"])
    withExtendedLifetime(supervisor) {}
  }

  @Test(arguments: [false, true])
  func `A sleep begins when the worker was notified, unless inspected`(isInspected: Bool) throws {
    let talk = try ConversationWorld()
    let conversation = try talk.begin()
    let worker = try talk.connect(conversation)
    try talk.suspend()
    world.worker.conversation = conversation
    sleep.suspend()
    #expect(memory.asked.isEmpty)
    if isInspected { sleep.inspect() }
    talk.timers.advance(by: WorkerConversation.suspendTimeout)
    #expect(memory.asked == [isInspected ? "inspect" : "suspend"])
    withExtendedLifetime((conversation, worker)) {}
  }

  @Test func `A suspension's outcome counts when the disk of its next image has been read, too`() {
    world.disk.immediate = nil
    sleep.suspend()
    memory.stop(with: world.inputs)
    #expect(world.named.isEmpty && sleep.isBusy && !world.isWatched)
    world.disk.answer(ImageDisk())
    #expect(world.named == ["suspended"] && world.isWatched)
    #expect(world.worker.asleepSince == world.timers.now)
  }

  @Test func `A resume from an image ends the wake watch, and the disk is read again`() {
    putToSleep()
    #expect(world.watches.active == 1 && world.disk.count == 1)
    #expect(world.worker.lastHibernation?.written == 100)
    sleep.resume()
    memory.restored?(.success(.forTest))
    #expect(world.watches.active == 0 && world.disk.count == 2)
    #expect(world.worker.asleepSince == nil)
  }

  @Test func `A worker without a process isn't acted on, and none that is ending`() throws {
    let end = try WorkerEndWorld()
    world.worker.ending = end.ending
    end.ending.kill()
    sleep.hibernate()
    #expect(world.named.isEmpty, "it is reported later")
    world.timers.advance(by: .zero)
    #expect(world.named == ["hibernateFailed"] && memory.asked.isEmpty)
    world.worker.process = nil
    for act in [sleep.suspend, sleep.hibernate, sleep.resume] { act() }
    #expect(world.named == ["hibernateFailed"] && memory.asked.isEmpty)
  }

  @Test func `A sleep accepts an outcome once, and none after the end of the run`() {
    sleep.suspend()
    memory.stop(with: world.inputs)
    memory.stop(with: world.inputs)
    #expect(world.named == ["suspended"])
    sleep.resume()
    sleep.end()
    memory.thawed?(nil)
    #expect(world.named == ["suspended"])
  }

  @Test func `A worker whose memory can't be verified never runs again`() {
    putToSleep()
    sleep.resume()
    memory.restored?(.failure(HibernationError(.writingBack, "damaged", aftermath: .intact)))
    #expect(world.isWatched)
    sleep.killUnverified()
    for act in [sleep.suspend, sleep.hibernate, sleep.resume] { act() }
    #expect(memory.asked.count == 3, "nothing more was begun")
    #expect(world.named.suffix(3) == ["suspendFailed", "hibernateFailed", "resumeFailed"])
  }

  @Test func `A worker whose image is used up and that couldn't be woken is recovered`() {
    putToSleep()
    sleep.resume()
    memory.restored?(.failure(HibernationError(.waking, "a thread doesn't go on")))
    sleep.resume()
    #expect(memory.asked.last == "recover")
    memory.recovered?(RecoveryOutcome(result: .success(.forTest)))
    #expect(world.named.suffix(2) == ["resumeFailed", "resumed"])
  }

  /// The worker was stopped, isn't to be suspended, and couldn't be woken.
  private func failToWake() {
    sleep.suspend()
    memory.refuseSuspension(Refusal(text: "it is at work", stillStopped: "EPERM"))
    #expect(world.named.isEmpty && memory.asked == ["suspend", "recover"] && sleep.isBusy)
  }

  @Test func `The refusal of a worker that works by its own timers is reported as such`() {
    sleep.suspend()
    memory.refuseSuspension(
      Refusal(suspending: SuspensionRefusal.worksByTimer(.seconds(1))))
    #expect(world.named == ["staysAwake"] && !sleep.isBusy)
  }

  @Test func `A refused suspension whose worker couldn't be woken ends with a recovery`() {
    failToWake()
    memory.recovered?(RecoveryOutcome(result: .success(.forTest)))
    #expect(world.named == ["suspendFailed"])
    #expect(!sleep.isBusy)
  }

  @Test func `A worker that can't be woken after a refused suspension sleeps until later`() {
    failToWake()
    let error = HibernationError(.waking, "EPERM", aftermath: .intact)
    memory.recovered?(RecoveryOutcome(result: .failure(error)))
    #expect(world.named == ["found", "wakeNeeded"])
    sleep.resume()
    #expect(memory.asked.last == "recover")
    memory.recovered?(RecoveryOutcome(result: .success(.forTest)))
    #expect(world.named.last == "resumed")
  }

  @Test func `A refused suspension is inspected if the outcome of its recovery was lost`() {
    failToWake()
    memory.loseOutcome()
    sleep.inspect()
    #expect(memory.asked.last == "inspect")
    memory.recovered?(RecoveryOutcome(result: .success(.forTest)))
    #expect(world.named.isEmpty)
    memory.inspected?(.asleep(.suspended, nil))
    #expect(world.named == ["found", "wakeNeeded"], "nothing watches its inputs")
  }

  @Test func `A sleep is inspected if its outcome was lost, and not while the operation runs`() {
    sleep.suspend()
    sleep.inspect()
    #expect(world.named == ["found"] && memory.asked == ["suspend"])
    memory.loseOutcome()
    sleep.inspect()
    #expect(memory.asked == ["suspend", "inspect"])
    memory.inspected?(.asleep(.suspended, nil))
    // The outcome is reported in the end.
    memory.stop(with: world.inputs)
    #expect(world.named == ["found", "found", "wakeNeeded"])
    #expect(
      !world.isWatched,
      "an outcome that comes too late has nothing watched: the worker may run by then")
    sleep.resume()
    #expect(memory.asked.last == "thaw, stopped")
  }

  @Test func `A worker whose inputs aren't watched is woken again when a resume fails`() {
    putToSleep()
    let failure = HibernationError(.reading, "its image can't be read", aftermath: .intact)
    sleep.resume()
    memory.restored?(.failure(failure))
    #expect(world.named.last == "resumeFailed", "its inputs wake it")
    world.worker.wakeWatch?.stop()
    sleep.resume()
    memory.restored?(.failure(failure))
    #expect(world.named.suffix(2) == ["resumeFailed", "wakeNeeded"])
  }

  @Test func `A worker whose inputs are watched sleeps on after an inspection`() {
    putToSleep()
    sleep.resume()
    memory.loseOutcome()
    sleep.inspect()
    memory.inspected?(.asleep(.hibernated, Self.image))
    #expect(world.named == ["suspended", "hibernated", "found"] && world.isWatched)
  }

  @Test func `A sleep that an earlier daemon began ends with a recovery`() {
    sleep.adopt(asleepWith: Self.image)
    #expect(sleep.resumeMethod.image?.length == 100)
    sleep.resume()
    memory.recovered?(
      RecoveryOutcome(
        result: .failure(HibernationError(.writingBack, "it has ended", aftermath: .vanished)),
        image: nil))
    #expect(world.killed == [world.id])
    #expect(world.named == ["resumeFailed"])
  }

  @Test func `The outcome of an operation for an adoption counts once`() {
    var outcomes: [Int?] = []
    var back: ((Int) -> Void)?
    sleep.perform({ _, done in back = done }, then: { outcomes.append($0) })
    #expect(sleep.isBusy)
    back?(7)
    back?(8)
    #expect(outcomes == [7] && !sleep.isBusy)
    sleep.perform({ _, done in back = done }, then: { outcomes.append($0) })
    sleep.end()
    back?(9)
    #expect(outcomes == [7, nil])
  }
}
