import Linux
import TestSupport
import Testing

@Suite("Footprints after a resume") struct AccountingTests {
  @Test(
    "After a resume, the reported footprint agrees with the kernel's although the worker is idle",
    .enabled(if: TestMachine.hasCgroups, "no cgroup for workers can be made here"),
    arguments: ["eager", "lazy", "auto"])
  func resumed(mode: String) throws {
    let web = try WebWorker(megabytes: 12)
    let policy = MainJobTests.patient.replacing(
      "hibernate: {", with: "hibernate: { resume: \(mode),")
    let daemon = try TestDaemon(policy + web.entry(.frozen), setting: .frozen)
    try daemon.wait("web", toBe: "foreground")
    let pid = try #require(try daemon.worker("web").pid)
    // The third resume is lazy under `auto` too: the first is eager, and the second learns.
    for round in 1...3 {
      try daemon.done("hibernate", "web")
      try daemon.done("wake", "web")
      let agrees = try eventually {
        let truth = try #require(try Footprint.measure(pid)).footprint
        let reported = try daemon.worker("web").footprint
        return truth > 12 << 20 && abs(reported - truth) <= 1 << 20
      }
      let reported = try daemon.worker("web").footprint
      let truth = try #require(try Footprint.measure(pid)).footprint
      #expect(agrees, "\(mode), round \(round): \(reported) bytes reported, \(truth) measured")
    }
  }
}
