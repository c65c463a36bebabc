import AsyncHTTPClient
import Control

@testable import KubernetesAPI
@testable import PodReports

/// A reporter that runs until this object ends.
final class RunningReporter: Sendable {
  let log = LogLines()
  let reporter: PodReporter
  let pod = PodReference(namespace: "shop", name: "web", uid: "u1")
  private let http: HTTPClient
  private let task: Task<Void, Never>

  /// - Parameter runs: True if its requests are made here, false if another part of the test does
  ///   that.
  init(_ access: KubernetesAccess, resizes: Bool = true, runs: Bool = true) throws {
    http = try KubernetesHTTP.client(for: access)
    var timing = ReportTiming()
    timing.resizeAfter = .zero
    timing.pauseBetweenResizes = .milliseconds(100)
    timing.resizeCheck = .milliseconds(200)
    (timing.firstOutage, timing.longestOutage) = (.milliseconds(50), .milliseconds(200))
    (timing.firstRetry, timing.longestRetry) = (.milliseconds(50), .milliseconds(200))
    timing.forbidden = .milliseconds(500)
    timing.daemonTimeout = .zero
    timing.events.first = .milliseconds(50)
    let settings = PodReporter.Settings(node: "node-1", resizes: resizes, timing: timing)
    reporter = PodReporter(access, http: http, settings: settings) { [log] in log.add($0) }
    task = Task { [reporter] in if runs { await reporter.run() } }
  }

  /// Reports a list with one container in this state, as the daemon and the runtime would.
  func report(_ state: String?, footprint: Int64 = 500_000) async {
    let container = PodView.Container(
      "web", worker: state == nil ? nil : "shop.web.web", state: state, footprint: footprint,
      secondsInState: 100)
    await reporter.looked(
      [PodView(pod, containers: [container])], isComplete: true, began: .now)
  }

  func happened(_ from: String, _ to: String, _ text: String) async {
    var record = EventRecord(time: "", kind: "state", text: text)
    (record.worker, record.from, record.to) = ("shop.web.web", from, to)
    await reporter.happened(record)
  }

  func end() async throws {
    task.cancel()
    await task.value
    await reporter.finish()
    try await http.shutdown()
  }
}
