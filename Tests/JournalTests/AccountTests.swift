import Lifecycle
import Policy
import Testing

@testable import Journal

@Suite("Counts and sentences from a journal") struct AccountTests {
  /// An engine that gets events at whole seconds.
  private struct Recorder {
    var engine: Engine
    var ledger = Ledger()
    var formatter = EventFormatter()
    var sentences: [String] = []
    var now = Instant.zero

    init(_ policy: LifecyclePolicy = LifecyclePolicy()) {
      engine = Engine(policy: policy)
      ledger.begin(engine, at: .zero)
    }

    mutating func send(_ seconds: Int64, _ event: Event) {
      now = .zero + .seconds(seconds)
      let directives = engine.handle(event, at: now)
      ledger.record(event, directives: directives, engine: engine, at: now)
      sentences += formatter.notices(of: event, directives, engine, at: now).map(\.text)
    }

    mutating func tally(at seconds: Int64) -> WorkerTally {
      ledger.close(at: .zero + .seconds(seconds))[web] ?? WorkerTally()
    }

    mutating func launch() {
      send(0, .added(web, WorkerProfile(policy: engine.policy)))
      send(0, .request(Request(id: 1, verb: .start, worker: web)))
      send(1, .launched(web))
      send(1, .footprint(web, .megabytes(10)))
    }
  }

  @Test func `A crash is counted, and a requested end isn't counted as a crash`() {
    var recorder = Recorder()
    recorder.launch()
    recorder.send(11, .exited(web, .signaled(11)))
    recorder.send(12, .request(Request(id: 2, verb: .start, worker: web)))
    recorder.send(13, .launched(web))
    recorder.send(14, .request(Request(id: 3, verb: .stop, worker: web)))
    recorder.send(15, .exited(web, .signaled(15)))
    let tally = recorder.tally(at: 20)
    #expect(tally.launches == 2 && tally.crashes == 1 && tally.stops == 1 && tally.exits == 0)
    #expect(tally.peakFootprint == ByteCount.megabytes(10).bytes)
    #expect(recorder.sentences.contains { $0.contains("ended by SIGSEGV") })
  }

  @Test func `A channel that opens isn't reported as a change of the configuration`() {
    var recorder = Recorder()
    recorder.launch()
    let before = recorder.sentences
    recorder.send(2, .channelsChanged(web, canShed: true, canAnswer: true))
    #expect(recorder.engine.profile(of: web)?.canShed == true)
    #expect(recorder.engine.profile(of: web)?.canAnswer == true)
    #expect(recorder.sentences == before)
  }

  @Test func `A hibernation and its resume are reported with their costs, and counted once`() {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(1)
    var recorder = Recorder(policy)
    recorder.launch()
    recorder.send(2, .request(Request(id: 2, verb: .hibernate, worker: web)))
    let result = HibernationResult(
      footprintBefore: .megabytes(10), footprintAfter: .zero, imageSize: .megabytes(2),
      duration: .milliseconds(40))
    for second in Int64(3)..<8 {
      switch recorder.engine.state(of: web) {
      case .background: recorder.send(second, .fileLocks(web, held: 0))
      case .suspending: recorder.send(second, .suspended(web))
      case .suspended: recorder.send(second, .footprint(web, .megabytes(10)))
      case .hibernating: recorder.send(second, .hibernated(web, result))
      default: break
      }
    }
    let since = recorder.engine.snapshot(of: web)?.since ?? .zero
    recorder.send(17, .request(Request(id: 3, verb: .foreground, worker: web)))
    recorder.send(18, .resumed(web, .milliseconds(9)))
    #expect(recorder.engine.state(of: web) == .foreground)
    let story = recorder.sentences.joined(separator: "\n")
    #expect(story.contains("10 MB → 0 B, image 2 MB, 40 ms"), "\(story)")
    #expect(story.contains("brought to the foreground on request; 9 ms"), "\(story)")
    let tally = recorder.tally(at: 20)
    #expect(tally.suspensions == 1 && tally.hibernations == 1 && tally.resumes == 1)
    #expect(tally.wakes == 0 && tally.resumeNanoseconds == 9_000_000)
    #expect(tally.freed == ByteCount.megabytes(10).bytes)
    let asleep = (.zero + .seconds(17) - since) / .seconds(1)
    #expect(tally.savedByteSeconds == Double(ByteCount.megabytes(10).bytes) * asleep)
    #expect(tally.resumeTimes.total == 1)
    #expect(tally.seconds(in: .hibernated) == (.zero + .seconds(17) - since) / .seconds(1))
  }

  @Test func `Trims are counted with the memory that left RAM, and their outcomes are events`() {
    var recorder = Recorder()
    recorder.send(0, .adopted(web, WorkerProfile(policy: recorder.engine.policy), .background))
    recorder.send(1, .footprint(web, .megabytes(40)))
    recorder.send(2, .request(Request(id: 1, verb: .trim, worker: web)))
    let result = TrimResult(
      residentBefore: .megabytes(40), residentAfter: .megabytes(4), swapped: .megabytes(36),
      duration: .milliseconds(100))
    recorder.send(3, .trimmed(web, result))
    recorder.send(4, .request(Request(id: 2, verb: .fill, worker: web)))
    recorder.send(5, .filled(web, swapped: .megabytes(1)))
    recorder.send(6, .request(Request(id: 3, verb: .trim, worker: web)))
    recorder.send(7, .trimFailed(web, "there is no swap", permanent: false))
    recorder.send(8, .trimLost(web, "it forks often"))
    let story = recorder.sentences.joined(separator: "\n")
    for text in [
      "trimmed: 40 MB → 4 MB in RAM, 36 MB in swap, 100 ms",
      "all of its trimmed memory came back: it forks often",
      "filled: 1 MB are still in swap", "can't be trimmed: there is no swap",
    ] { #expect(story.contains(text), "\(story)") }
    let tally = recorder.tally(at: 20)
    #expect(tally.trims == 1 && tally.trimmed == ByteCount.megabytes(36).bytes, "\(tally)")
    // 36 MB were out of RAM for 2 s, and 1 MB for the 15 s after the fill.
    #expect(tally.savedByteSeconds == Double(ByteCount.megabytes(87).bytes), "\(tally)")
    #expect(tally.byteSeconds == Double(ByteCount.megabytes(40 * 19 - 87).bytes), "\(tally)")
  }

  @Test func `What a wrapper reports of its worker's sleep is counted, and what it saved`() {
    var recorder = Recorder()
    var profile = WorkerProfile(policy: recorder.engine.policy)
    profile.leader = "its wrapper, pid 1"
    recorder.send(0, .adopted(web, profile, .background))
    recorder.send(1, .footprint(web, .megabytes(10)))
    recorder.send(2, .moved(web, .suspended))
    recorder.send(3, .moved(web, .hibernated))
    recorder.send(3, .footprint(web, .zero))
    recorder.send(13, .moved(web, .foreground))
    recorder.send(14, .moved(web, .background))
    recorder.send(15, .moved(web, .suspended))
    recorder.send(16, .moved(web, .background))
    let tally = recorder.tally(at: 20)
    #expect(tally.suspensions == 2 && tally.hibernations == 1, "\(tally)")
    #expect(tally.resumes == 1 && tally.wakes == 1, "\(tally)")
    #expect(tally.savedByteSeconds == Double(ByteCount.megabytes(10).bytes) * 10, "\(tally)")
  }

  @Test("Quantiles of durations are right within 10 %, and sums have the counts of both")
  func quantiles() throws {
    var times = DurationBuckets()
    #expect(times.quantile(0.5) == nil)
    for milliseconds in Int64(1)...100 { times.add(nanoseconds: milliseconds * 1_000_000) }
    let (half, most) = (try #require(times.quantile(0.5)), try #require(times.quantile(0.95)))
    #expect(abs(half - 0.050) < 0.005 && abs(most - 0.095) < 0.0095, "\(half) \(most)")
    var slow = DurationBuckets()
    slow.add(nanoseconds: .max)
    slow.add(nanoseconds: 0)
    times += slow
    #expect(times.total == 102)
    #expect((times.quantile(0) ?? 1) < 0.0002 && (times.quantile(1) ?? 0) > 1e9)
  }

  @Test func `A day's counts survive the disk, and a damaged day is refused`() throws {
    var recorder = Recorder()
    recorder.launch()
    recorder.send(11, .exited(web, .exited(1)))
    let record = DayRecord(day: 20_778, tallies: [web: recorder.tally(at: 12)])
    let bytes = try record.encoded()
    #expect(try DayRecord(bytes) == record)
    var damaged = bytes
    damaged[bytes.count / 2] ^= 4
    #expect(throws: JournalMismatch.self) { try DayRecord(damaged) }
    #expect(throws: JournalMismatch.self) { try DayRecord(Array(bytes.dropLast(9))) }
  }
}

private let web = WorkerID("web")
