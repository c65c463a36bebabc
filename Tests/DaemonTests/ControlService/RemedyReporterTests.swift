import Control
import Lifecycle
import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("The line that lets a worker sleep") struct RemedyReporterTests {
  private static let text = """
    policy_overrides:
      foreground: { mode: activity, idle_after: 60s }
      hibernate: { max_footprint: 16MB }
    workers:
      web: { command: [sleep, "600"] }
    """
  private let web = WorkerID("web")

  private func read(_ text: String) throws -> DaemonConfiguration {
    let read = ConfigurationFile.parse(
      text: text, file: "etc/dormouse.yaml", library: PolicyLibrary(directories: []),
      environment: [:])
    return try #require(read.value, "\(read.diagnostics)")
  }

  /// The remedy for a worker that is suspended and too large, or in the foreground.
  private func remedy(
    _ text: String = text, suspended: Bool, isWrapper: Bool = false,
    activity: ActivityReport? = nil, change: (WorkerUnit) -> Void = { _ in }
  ) throws -> RemedyReport? {
    let configuration = try read(text)
    let policy = try #require(configuration.workers.last?.policy)
    var engine = Engine(policy: configuration.policy)
    let now = Instant.zero + .seconds(1)
    _ = engine.handle(
      .adopted(web, WorkerProfile(policy: policy), suspended ? .suspended : .foreground),
      at: .zero)
    _ = engine.handle(.footprint(web, .megabytes(21)), at: now)
    let worker = WorkerUnit.forTest("web")
    change(worker)
    return RemedyReporter(
      engine: engine, origins: configuration.origins, isWrapper: isWrapper, now: now
    ).remedy(of: web, WorkerFacts(worker: worker), activity: activity)
  }

  @Test func `A declared worker's line belongs under its entry, in its file`() throws {
    let remedy = try #require(try self.remedy(suspended: true))
    #expect(remedy.line == "policy: { hibernate: { max_footprint: 32MB } }")
    #expect(remedy.file == "etc/dormouse.yaml" && remedy.fileLine == 5)
    #expect(remedy.place == "in etc/dormouse.yaml, under `web:` of `workers:` (line 5)")
    #expect(remedy.command == "dormouse hibernate web")
  }

  @Test func `The line, pasted into the worker's entry, sets the values of the remedy`() throws {
    let line = try #require(try self.remedy(suspended: true)?.line)
    let pasted = try read("workers:\n  web:\n    command: [sleep, \"600\"]\n    \(line)\n")
    #expect(pasted.workers.first?.policy.hibernate.maxFootprint == .megabytes(32))
  }

  /// In the entry, the pasted text replaces `old`.
  @Test(
    "What belongs inside a section is pasted into it, where it is there already",
    arguments: [
      ("OLD", "hibernate: { max_footprint: 32MB }"),
      ("hibernate:\n        OLD\n        after: 5m", "max_footprint: 32MB  # in `hibernate`"),
      (
        "hibernate:\n        max_footprint: 17MB",
        "max_footprint: 32MB  # in `hibernate`, instead of that in line 9"
      ),
    ])
  func inside(section: String, line: String) throws {
    let old = section.contains("OLD") ? "OLD" : "max_footprint: 17MB"
    let text =
      "\(Self.text.replacing("web: {", with: "old: {"))\n  web:\n    policy:\n      "
      + "\(section)\n      background: { suspend_after: 77s }\n    command: sleep 600\n"
    let before = text.replacing("OLD", with: "# nothing")
    let remedy = try #require(try self.remedy(before, suspended: true))
    #expect(remedy.line == line && remedy.fileLine == 7)
    #expect(remedy.place == "in etc/dormouse.yaml, line 7, in `policy:` of `web:`")
    let workers = try read(text.replacing(old, with: line)).workers
    let policy = try #require(workers.first { $0.name == "web" }).policy
    #expect(policy.hibernate.maxFootprint == .megabytes(32))
    #expect(policy.background.suspendAfter == .seconds(77))
  }

  @Test func `Several keys are lines of their own, for a worker and for all`() throws {
    let origins = try read(Self.text).origins
    let settings = [
      ("foreground.idle_after", "5s"), ("hibernate.disk.budget", "1GB"),
      ("background.suspend_after", "2s"),
    ].map { (key: $0, value: $1) }
    let lines = try #require(origins.lines(of: settings, worker: nil))
    #expect(
      lines.text.split(separator: "\n") == [
        "idle_after: 5s  # in `foreground`, instead of that in line 2",
        "disk: { budget: 1GB }  # in `hibernate`",
        "background: { suspend_after: 2s }",
      ])
    #expect(lines.section.text == "etc/dormouse.yaml:2")
    #expect(origins.lines(of: settings, worker: "web") == nil)
  }

  @Test func `A wrapped or adopted program gets options, and so does an undeclared one`() throws {
    let wrapped = try remedy(suspended: true, isWrapper: true)
    #expect(wrapped?.line == "{ hibernate: { max_footprint: 32MB } }")
    #expect(wrapped?.place == "in the file of `dormouse wrap --policy FILE`")
    var activity = ActivityReport(uses: 40, overSeconds: 800)
    activity.medianQuietSeconds = 19
    let idle = try remedy(suspended: false, isWrapper: true, activity: activity)
    #expect(idle?.line?.hasPrefix("--idle-after ") == true, "\(String(describing: idle))")
    #expect(idle?.place == "as options of `dormouse wrap`")
    let adopted = try remedy(suspended: true) {
      ($0.isDeclared, $0.external) = (false, ExternalWorker())
    }
    #expect(adopted?.place == "as options of `dormouse adopt`")
    let started = try remedy(suspended: true) { $0.isDeclared = false }
    #expect(started?.line == "--set hibernate.max_footprint=32MB")
    #expect(started?.place?.hasPrefix("as options of `dormouse run`") == true)
  }

  @Test func `A worker that writes by itself gets no shorter time without use`() throws {
    #expect(try remedy(suspended: false) != nil)
    #expect(try remedy(suspended: false) { $0.sample.sign = .writes } == nil)
  }

  private func regularUse() -> ActivityReport {
    var activity = ActivityReport(uses: 40, overSeconds: 800)
    activity.medianQuietSeconds = 19
    activity.advice = .init(
      code: "regular_use", key: "health_checks_while_asleep", text: "used every 20 s")
    return activity
  }

  @Test(
    arguments: [
      ([8080], [], "8080"), ([8080, 8081], [], "PORT"),
      (
        [8080], [AsleepAnswer(port: 9000, path: "/healthz")],
        "[9000/healthz, 8080]  # instead of the one that is there"
      ),
      ([8080], [AsleepAnswer(port: 8080)], "8080/PATH  # instead of the one that is there"),
    ] as [(Set<UInt16>, [AsleepAnswer], String)])
  func `A worker that regular uses keep awake gets health_checks_while_asleep`(
    ports: Set<UInt16>, checks: [AsleepAnswer], value: String
  ) throws {
    let remedy = try self.remedy(suspended: false, activity: regularUse()) {
      $0.sample.ports = ports
      $0.configuration.healthChecksWhileAsleep = checks
    }
    #expect(remedy?.settings.map(\.key) == ["health_checks_while_asleep"])
    #expect(remedy?.line == "health_checks_while_asleep: \(value)")
  }

  @Test func `Without unanswered health checks a worker gets a shorter time`() throws {
    let answered = try remedy(suspended: false, activity: regularUse()) {
      $0.sample.ports = [8080]
      $0.configuration.healthChecksWhileAsleep = [AsleepAnswer(port: 8080, path: "/healthz")]
    }
    #expect(answered?.settings.map(\.key).first == "foreground.idle_after")
    var activity = regularUse()
    activity.advice = nil
    let other = try remedy(suspended: false, activity: activity)
    #expect(other?.settings.map(\.key).first == "foreground.idle_after")
  }
}
