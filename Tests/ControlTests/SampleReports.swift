import Control

/// One value of each wire type with every field set, so that a round trip proves every field.
enum Sample {
  static let launch = LaunchSpecification(
    command: ["/usr/bin/python3", "-c", "print('ü\u{1B}')"], directory: "/srv",
    environment: ["PATH": "/bin", "EMPTY": ""], importance: 7)

  static let request = ControlRequest(
    id: .max, verb: .run, worker: "api", launch: launch, report: "2026-11-21-1")

  static var foreground: WorkerReport {
    var worker = WorkerReport(name: "editor", state: "foreground")
    worker.band = 100
    worker.importance = 5
    worker.pid = 4211
    worker.processes = 3
    worker.footprint = 67_318_579
    worker.peakFootprint = 73_400_320
    worker.reclaimable = 12_582_912
    worker.secondsInState = 245.2
    worker.secondsSinceUse = 0.4
    worker.command = ["python3", "server.py", "--title", "it's me"]
    worker.policy = "ios-5"
    worker.log = "/var/lib/dormouse/logs/editor.log"
    worker.reason = CodedText("requested_foreground", "foreground on request")
    worker.hibernation = CodedText("not_suspended", "it is in the foreground")
    worker.launchSeconds = 0.2212
    worker.resumeSeconds = 0.014
    worker.lastExit = ExitStatusReport(code: "exited", text: "exit code 1", status: 1)
    worker.tasks = ["upload", "index"]
    return worker
  }

  static var hibernated: WorkerReport {
    var worker = WorkerReport(name: "cache", state: "hibernated")
    worker.band = 75
    worker.pid = 4300
    worker.processes = 1
    worker.footprint = 4096
    worker.peakFootprint = 18_253_611
    worker.imageSize = 3_565_158
    worker.secondsInState = 12.4
    worker.secondsSinceUse = 52
    worker.command = ["redis-server"]
    worker.policy = "ios-5"
    worker.reason = CodedText("suspended_long_enough", "suspended for 30 s")
    return worker
  }

  /// A report with all of its coded texts.
  static var coded: WorkerReport {
    var worker = hibernated
    worker.lastShed = ShedReport(
      code: "gave_back", text: "freed 3 MB after a memory warning", occasion: "warning",
      isAnswered: true,
      before: 20_000_000, after: 17_000_000)
    worker.earlyWake = EarlyWakeReport(
      text: "needed again too soon once", count: 1, lastSecondsAgo: 40, bandBonus: 10,
      raised: [.init(key: "hibernate.after", declaredSeconds: 30, seconds: 60)])
    worker.shadow = ShadowReport(
      text: "would have freed 1 MB", suspensions: 2, hibernations: 1, terminations: 0,
      freed: 1 << 20, wakes: 1, wakeSeconds: 0.009)
    worker.secondsAsleep = 42.4
    worker.lastWake = LastWakeReport(
      code: "wake_needed", text: "woken by a connection on port 80", secondsAgo: 90_000)
    worker.talk = CodedText("without_effect", "answers without effect: 1 late")
    return worker
  }

  static var terminated: WorkerReport {
    var worker = WorkerReport(name: "game", state: "terminated")
    worker.secondsInState = 7322
    worker.reason = CodedText("pressure", "pressure critical")
    return worker
  }

  static let daemon = DaemonReport(
    pid: 812, version: "0.1.0", policy: "ios-5", mode: "enforce", pressure: "warning",
    budget: 268_435_456, available: 37_580_964, budgetIsHost: false,
    freezer: CodedText("cgroup_v2_freezer", "cgroup-v2 freezer"),
    stateDirectory: "/var/lib/dormouse")

  static let jetsam = JetsamRecord(
    id: "2026-11-21-1", time: "2026-11-21T08:46:07Z", policy: "ios-5", level: "critical",
    why: CodedText("pressure", "4.8 MB available, under 5 %"), budget: 134_217_728,
    availableBefore: 5_033_165,
    availableAfter: 75_497_472, largest: "game",
    workers: [
      .init(
        name: "game", state: "suspended", band: 30, footprint: 70_254_592,
        peakFootprint: 73_400_320, secondsSinceUse: 245, secondsOfAge: 3725,
        victimBecause: CodedText("chosen_by_order", "lowest band"),
        gaveBack: 70_254_592),
      .init(
        name: "cache", state: "hibernated", band: 75, footprint: 4096, peakFootprint: 18_253_611,
        secondsSinceUse: 52, secondsOfAge: 60),
      .init(
        name: "editor", state: "foreground", band: 100, footprint: 53_687_091,
        peakFootprint: 54_525_952, secondsSinceUse: 0.4, secondsOfAge: 7),
    ],
    host: .init(
      total: 134_217_728, free: 2_097_152, reclaimable: 3_145_728, wired: 10_485_760,
      workers: 123_945_779, someStall: 12.34, fullStall: 5))

  static let response = ControlResponse(
    id: 7, result: .refused, text: "no", workers: [foreground, hibernated, terminated],
    daemon: daemon, jetsam: jetsam, reports: ["2026-11-21-1", "2026-11-20-4"])
}
