import ArgumentParser
import Control
import Daemon
import Journal
import Lifecycle
import Policy

struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Summarize by worker and week: launches, crashes, terminations, resumes, footprints.",
    discussion: """
      If a daemon runs, the first line shows the memory that sleep saves now. CRASHES counts \
      unrequested ends by a signal or with a status other than 0, launches that failed, and \
      terminations by a watchdog. TIME-OUTS counts launches that weren't ready in time, JETSAM \
      terminations for memory, SLEPT suspensions. ASLEEP is the share of the time that a worker \
      was suspended or hibernated, P50 and P95 are the times in which 50 % and 95 % of its resumes \
      from hibernation ended, SAVED is the memory that hibernation freed, on average. \
      A program under `dormouse wrap` is counted while a daemon runs, from the reports of its \
      wrapper, which don't have the times of its resumes. Averages are over the time that a worker \
      was alive. Below the tables, crashes are grouped by worker and cause (a signal, an exit \
      status, a missed deadline, the kernel's OOM killer, a failed launch): how often, when last, \
      and the last five lines that the newest one wrote. Days and weeks are in UTC; a week begins \
      on Monday. The counts are kept for 13 months, also without a journal.
      """)
  @Option(help: ArgumentHelp("Begin this long ago, in whole days.", valueName: "time"))
  var since = Since.week
  @Option(
    help: ArgumentHelp("Show only this worker's counts.", valueName: "name"), completion: .workers)
  var worker: String?
  @Option(
    help: ArgumentHelp(
      "Read the counts in this state directory, and ask no daemon.", valueName: "directory"),
    completion: .directory)
  var stateDirectory: String?
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    let store = DayStore(directory: try directory())
    let today = Clock.now().day
    let days = Int(since.duration / .seconds(86_400))
    var weeks: [Int: [WorkerID: WorkerTally]] = [:]
    var groups: [WorkerID: CrashGroups] = [:]
    for day in (today - max(1, days) + 1)...today {
      do {
        guard let record = try store.load(day) else { continue }
        weeks[CalendarDate.weekStart(of: day), default: [:]].merge(record.tallies) { $0 + $1 }
        groups.merge(record.crashes, uniquingKeysWith: +)
      } catch {
        Output.complain(
          "can't read the counts of \(CalendarDate(daysSince1970: day).text): \(error)")
      }
    }
    let reports = weeks.sorted { $0.key > $1.key }.flatMap { week, tallies in
      tallies.sorted { $0.key < $1.key }
        .filter { worker == nil || $0.key.name == worker }
        .map {
          WeekReport(week: CalendarDate(daysSince1970: week).text, worker: $0.key.name, $0.value)
        }
    }
    if let worker, reports.isEmpty {
      let names = Set(weeks.values.flatMap { $0.keys.map(\.name) })
      throw CommandFailure(
        .unknownWorker,
        "no counts for a worker `\(escaped(worker))` in that time"
          + hint(for: worker, among: names.sorted()))
    }
    let crashes = CrashReport.sorted(groups, of: worker)
    if json { return try Output.json(WeeksReport(weeks: reports, crashes: crashes)) }
    if let saved = savedNow() { try Output.line("saved now \(saved)\n") }
    if reports.isEmpty { return try Output.line("no counts for that time") }
    try Output.show { renderWeeks(reports, width: $0, color: $1) }
    if crashes.isEmpty { return }
    try Output.show { "\n" + renderCrashes(crashes, width: $0, color: $1) }
  }

  /// Returns the text about the memory that is saved now. The result is nil if no daemon runs, or
  /// if another directory or one worker is wanted.
  private func savedNow() -> String? {
    guard stateDirectory == nil, worker == nil,
      // If the daemon can't be asked, the counts are shown without this line.
      let workers = connection.workersIfAnswered()
    else { return nil }
    return savedNowText(workers)
  }

  private func directory() throws -> String {
    if let stateDirectory { return "\(stateDirectory)/reports" }
    do {
      var daemon = try connection.connect()
      return try daemon.journal().reports
    } catch let error as ControlError where error.exit == .noDaemon && connection.socket == nil {
      // The counts stay when the daemon ends.
      Output.complain("no daemon is running; showing the counts of the last one")
      return "\(DefaultPaths.ofThisProcess().stateDirectory)/reports"
    }
  }
}

extension CrashReport {
  fileprivate static func sorted(
    _ groups: [WorkerID: CrashGroups], of worker: String?
  ) -> [CrashReport] {
    groups.sorted { $0.key < $1.key }
      .filter { worker == nil || $0.key.name == worker }
      .flatMap { id, crashes in
        crashes.groups.sorted { $0.at > $1.at }.map { CrashReport(worker: id.name, $0) }
      }
  }

  private init(worker: String, _ group: CrashGroup) {
    var cause = ExitStatusReport(code: group.cause.code, text: group.reason)
    switch group.cause {
    case .signal(let number): cause.signal = number
    case .status(let number): cause.status = number
    case .deadline, .kernel, .launch, .unknown: break
    }
    self.init(
      worker: worker, cause: cause, count: group.count,
      last: WallTime(nanoseconds: group.at).text, lastLines: group.lines)
  }
}

extension WeekReport {
  init(week: String, worker: String, _ tally: WorkerTally) {
    self.init(week: week, worker: worker)
    launches = tally.launches
    failedLaunches = tally.failedLaunches
    crashes = tally.crashes
    launchTimeouts = tally.launchTimeouts
    memoryTerminations = tally.memoryTerminations
    watchdogTerminations = tally.watchdogTerminations
    leakSuspicions = tally.leakSuspicions
    suspensions = tally.suspensions
    hibernations = tally.hibernations
    resumes = tally.resumes
    maxResume = Double(tally.maxResumeNanoseconds) / 1e9
    resumeP50 = tally.resumeTimes.quantile(0.5)
    resumeP95 = tally.resumeTimes.quantile(0.95)
    asleepSeconds = tally.asleepSeconds
    savedByteHours = tally.savedByteSeconds / 3600
    averageFootprint = tally.averageFootprint
    peakFootprint = tally.peakFootprint
    aliveSeconds = tally.aliveSeconds
  }
}
