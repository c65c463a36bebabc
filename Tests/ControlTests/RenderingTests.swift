import Control
import Testing

@testable import dormouse

@Suite struct Rendering {
  private let all = [Sample.foreground, Sample.hibernated, Sample.terminated]

  @Test func `Output of ps shows a line for each worker, totals and pressure`() {
    #expect(
      renderProcessTable(all, daemon: Sample.daemon) == """
        NAME    STATE       FOOTPRINT   IMAGE   PID      FOR  REASON
        editor  foreground    64.2 MB       -  4211  4 m 5 s  foreground on request
        cache   hibernated     4.0 KB  3.4 MB  4300     12 s  suspended for 30 s
        game    terminated        0 B       -     -  2 h 2 m  pressure critical
        3 workers: 1 foreground, 1 hibernated, 1 terminated; footprint 64.2 MB, images 3.4 MB
        pressure warning; 35.8 MB of 256.0 MB available (14 %); policy ios-5

        """)
  }

  @Test func `Output of ps shows host, project and savings where workers have any`() {
    var helper = Sample.hibernated
    helper.wrapper = 12
    (helper.host, helper.directory, helper.saved) = ("nvim", "/home/me/shop", 85_000_000)
    #expect(
      renderProcessTable([helper, Sample.foreground]) == """
        NAME    STATE       FOOTPRINT    SAVED   IMAGE   PID      FOR  HOST  PROJECT  REASON
        cache   hibernated     4.0 KB  81.1 MB  3.4 MB  4300     12 s  nvim  shop     \
        suspended for 30 s
        editor  foreground    64.2 MB        -       -  4211  4 m 5 s  -     -        \
        foreground on request
        2 workers: 1 foreground, 1 hibernated; footprint 64.2 MB, \
        saved now 81.1 MB of 145.3 MB (56 %), images 3.4 MB

        """)
    let status = renderWorkerStatus(helper)
    #expect(status.contains("; 81.1 MB saved\n"), "\(status)")
    #expect(status.contains("pid 12, for nvim, in /home/me/shop\n"), "\(status)")
  }

  @Test func `Output of ps without workers says that there are none`() {
    var daemon = Sample.daemon
    daemon.mode = "shadow"
    #expect(
      renderProcessTable([], daemon: daemon) == """
        no workers
        pressure warning; 35.8 MB of 256.0 MB available (14 %); policy ios-5 \
        (shadow mode: decisions are logged, not applied)

        """)
  }

  @Test
  func `Output of ps drops columns to keep the reasons, and colours states without their padding`()
  {
    let text = renderProcessTable([Sample.hibernated], width: 64, color: true)
    let lines = text.split(separator: "\n")
    #expect(
      lines[1]
        == "cache  \u{1B}[34mhibernated\u{1B}[0m     4.0 KB  3.4 MB  12 s  suspended for 30 s")
    #expect(lines[0].hasPrefix("\u{1B}[1mNAME\u{1B}[0m   \u{1B}[1mSTATE\u{1B}[0m       "))
  }

  @Test func `A long reason is readable to its end in 80 columns, and no line is longer`() {
    var worker = Sample.hibernated
    worker.reason.text =
      "restarts in 3 s: the probe of liveness failed 3 times: no answer within 1 s from port 8080"
    (worker.footprint, worker.imageSize) = (1000 << 20, 1000 << 20)
    let lines = renderProcessTable([worker, Sample.terminated], width: 80)
      .split(separator: "\n").map(String.init)
    #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    #expect(!lines.joined().contains("…"), "\(lines)")
    let text = lines.joined(separator: " ").split(separator: " ").joined(separator: " ")
    #expect(text.contains("no answer within 1 s from port 8080"), "\(lines)")
    // 120 columns are enough for all of them, and without a terminal there is no limit.
    #expect(renderProcessTable([worker], width: 120).contains("IMAGE"))
    #expect(!renderProcessTable([worker]).contains("BAND"))
    #expect(renderProcessTable([worker], wide: true).contains("hibernated    75  "))
    #expect(renderProcessTable([worker]).contains(worker.reason.text + "\n"))
  }

  @Test func `Tables of report and replay continue in a second block where the columns don't fit`()
    throws
  {
    var week = WeekReport(week: "2026-11-16", worker: "a-worker")
    (week.averageFootprint, week.peakFootprint) = (1000 << 20, 1000 << 20)
    let text = renderWeeks([week], width: 80)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.allSatisfy { $0.count <= 80 }, "\(text)")
    #expect(lines.count { $0.hasPrefix("NAME ") } == 2 && text.contains("ALIVE"), "\(text)")
    #expect(renderWeeks([week]).split(separator: "\n").count == 3)
    let counts = PolicyComparison.Counts()
    let comparison = PolicyComparison(
      policy: "iphone-os-3", workers: [.init(worker: "w", recorded: counts, other: counts)],
      relaunches: 0, relaunchSeconds: 0, differingChanges: 0, firstChanges: [])
    let compared = renderComparison(comparison, clock: { $0 }, width: 60)
    #expect(
      compared.split(separator: "\n").allSatisfy { $0.count <= 60 }, "\(compared)")
    var total = PolicyTotals(policy: "iphone-os-3")
    (total.waitSeconds, total.averageFootprint) = (0.25, 1000 << 20)
    let totals = renderTotals([PolicyTotals(), total], width: 80)
    #expect(totals.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(totals)")
    #expect(renderTotals([PolicyTotals(), total]).split(separator: "\n").count == 3, "\(totals)")
  }

  @Test func `A hostile worker name neither moves the cursor nor breaks the table`() {
    var worker = Sample.hibernated
    worker.name = "a\n\u{1B}[2J) R 1"
    worker.reason.text = "said \u{7}"
    let lines = renderProcessTable([worker]).split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[1].hasPrefix("a\\n\\u{1b}[2J) R 1  hibernated"))
    #expect(lines[1].hasSuffix("said \\u{7}"))
  }

  @Test func `Names of wide characters keep the columns aligned`() {
    var worker = Sample.hibernated
    worker.name = "睡鼠"
    let lines = renderProcessTable([worker, Sample.terminated]).split(separator: "\n")
    #expect(lines[1].hasPrefix("睡鼠  hibernated"))
    #expect(lines[2].hasPrefix("game  terminated"))
  }

  @Test func `Output of status for a worker shows everything that is known`() {
    #expect(
      renderWorkerStatus(Sample.foreground) == """
        editor: foreground for 4 m 5 s
          reason       foreground on request
          band         100, importance 5
          last used    400 ms ago
          footprint    64.2 MB, peak 70.0 MB
          reclaimable  12.0 MB of file pages, not in the footprint
          hibernation  it is in the foreground
          cost         launch 221 ms, resume 14 ms: resuming is 15.8 times as fast
          tasks        upload, index
          processes    3, the first is pid 4211
          last exit    exit code 1
          policy       ios-5
          log          /var/lib/dormouse/logs/editor.log
          command      python3 server.py --title 'it'\\''s me'

        """)
  }

  @Test
  func `A long name is shortened at a terminal so that no line wraps, and is whole elsewhere`() {
    var long = Sample.foreground
    long.name = String(repeating: "a-long-name-", count: 5)
    long.reason.text = String(repeating: "a reason ", count: 9)
    let lines = renderProcessTable([long, Sample.hibernated], width: 80).split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    #expect(lines[1].hasPrefix("a-long-name"), "\(lines)")
    #expect(lines.contains { $0.hasPrefix("cache   ") }, "\(lines)")
    #expect(renderProcessTable([long]).contains(long.name))
    var longer = Sample.hibernated
    (longer.secondsInState, longer.pid) = (86_400 * 99, 4_194_303)
    (longer.footprint, longer.imageSize) = (1023 << 20, 1023 << 20)
    let narrow = renderProcessTable([long, longer], width: 80).split(separator: "\n")
    #expect(narrow.allSatisfy { $0.count <= 80 }, "\(narrow)")
  }

  @Test func `Output of status leaves out what isn't known`() {
    #expect(
      renderWorkerStatus(Sample.hibernated) == """
        cache: hibernated for 12 s
          reason       suspended for 30 s
          band         75
          last used    52 s ago
          footprint    4.0 KB, peak 17.4 MB
          reclaimable  0 B of file pages, not in the footprint
          image        3.4 MB on disk
          processes    pid 4300
          policy       ios-5
          command      redis-server

        """)
  }

  @Test func `Output of status says when relaunching a worker is faster than resuming it`() {
    var worker = Sample.hibernated
    worker.launchSeconds = 0.01
    worker.resumeSeconds = 0.05
    #expect(renderWorkerStatus(worker).contains("relaunching is 5.0 times as fast\n"))
    worker.resumeSeconds = nil
    #expect(renderWorkerStatus(worker).contains("launch 10 ms, resume not yet known\n"))
  }

  @Test func `Output of status for the daemon shows budget, freezer and workers`() {
    #expect(
      renderDaemonStatus(Sample.daemon, workers: all) == """
        dormouse 0.1.0, pid 812
          saved now    0 B of 64.2 MB (0 %)
          policy       ios-5, mode enforce
          pressure     warning
          memory       35.8 MB of 256.0 MB available (14 %)
          budget       fixed (memory.budget)
          suspends by  cgroup-v2 freezer
          state in     /var/lib/dormouse
          workers      3 workers: 1 foreground, 1 hibernated, 1 terminated; footprint 64.2 MB, \
        images 3.4 MB

        """)
    #expect(savedNowText([]) == nil)
    var limited = Sample.daemon
    limited.budgetIsHost = true
    limited.limitedBy = "/sys/fs/cgroup/unit"
    #expect(
      renderDaemonStatus(limited).contains("budget       limit of the cgroup /sys/fs/cgroup/unit\n")
    )
    #expect(renderDaemonStatus(Sample.daemon, color: true).contains("\u{1B}[33mwarning\u{1B}[0m"))
  }

  @Test func `Output of jetsam lists all workers and marks the victims`() {
    #expect(
      renderJetsam(Sample.jetsam) == """
        jetsam report 2026-11-21-1
          time        2026-11-21T08:46:07Z
          pressure    critical
          why         4.8 MB available, under 5 %
          available   4.8 MB before, 72.0 MB after, of 128.0 MB
          host        2.0 MB free, 3.0 MB reclaimable, 10.0 MB wired, 118.2 MB in workers, \
        of 128.0 MB
          stalled     some tasks waited for memory 12.3 % of the time, all tasks 5.0 %
          largest     game, marked *
          terminated  1 of 3 workers
          policy      ios-5

        NAME    STATE       BAND  FOOTPRINT     PEAK      AGE  UNUSED FOR
        game *  suspended     30    67.0 MB  70.0 MB  1 h 2 m     4 m 5 s  (terminated) \
        lowest band; freed 67.0 MB
        cache   hibernated    75     4.0 KB  17.4 MB      1 m        52 s
        editor  foreground   100    51.2 MB  52.0 MB      7 s      400 ms

        """)
  }

  @Test func `Output of jetsam names the largest processes of the machine and their workers`() {
    var record = Sample.jetsam
    record.largestProcesses = .init(
      list: [
        .init(pid: 812, name: "chrome\u{1B}", resident: 1 << 30),
        .init(pid: 9, name: "game", resident: 70 << 20, worker: "game"),
      ], isComplete: false)
    let text = renderJetsam(record)
    #expect(text.contains("  processes   1.0 GB chrome\\u{1b}, pid 812\n"), "\(text)")
    #expect(text.contains("              70.0 MB game, pid 9, of worker game\n"), "\(text)")
    #expect(text.contains("              (there was no time to read all processes"), "\(text)")
  }

  @Test
  func `An event is one line with its change, and a hostile worker name doesn't move the cursor`() {
    var event = EventRecord(
      time: "2026-11-21T08:46:07.104Z", kind: "state", text: "idle for 10 s\n; 9 ms")
    event.worker = "web\u{1B}[2J"
    event.from = "background"
    event.to = "suspended"
    #expect(
      renderEvent(event, clock: "08:46:07.104")
        == "08:46:07.104 web\\u{1b}[2J background → suspended: idle for 10 s\\n; 9 ms\n")
    let colored = renderEvent(event, clock: "08:46:07.104", color: true)
    #expect(colored.contains("\u{1B}[33msuspended\u{1B}[0m"), "\(colored)")
  }

  @Test func `Long values of status wrap below themselves, and commands stay whole`() {
    let text = renderWorkerStatus(Sample.foreground, width: 50)
    #expect(
      text.contains(
        """
          cost         launch 221 ms, resume 14 ms:
                       resuming is 15.8 times as fast

        """), "\(text)")
    #expect(text.contains("  command      python3 server.py --title 'it'\\''s me'\n"))
  }

  @Test func `Output of status for a worker that has ended has no footprint`() {
    let text = renderWorkerStatus(Sample.terminated)
    #expect(!text.contains("footprint") && !text.contains("reclaimable"), "\(text)")
  }
}
