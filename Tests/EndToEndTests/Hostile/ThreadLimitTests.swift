import TestSupport
import Testing

@Suite("A daemon that may start no further thread") struct ThreadLimitTests {
  @Test(
    "It hibernates its first worker and resumes it, by the thread that is kept for that",
    .enabled(if: TestMachine.canBecomeNobody, "the limit doesn't hold for root"))
  func hibernates() throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(
      MainJobTests.patient + web.entry(.ordinaryUser), setting: .ordinaryUser)
    let (connection, digest) = try web.answer(under: daemon)
    try daemon.limitThreads(to: 1)
    try daemon.done("hibernate", "web")
    try daemon.done("foreground", "web")
    #expect(try connection.get("/digest") == digest)
    // It ends as it does otherwise.
    try daemon.limitThreads(to: 1000)
  }
}

extension TestDaemon {
  /// Sets the soft limit of its user's threads. That user may change it, and root without
  /// CAP_SYS_RESOURCE may not.
  func limitThreads(to count: Int) throws {
    let limit = ["prlimit", "--pid", "\(pid)", "--nproc=\(count):"]
    let outcome = try Command(arguments: TestMachine.becomingNobody + limit).run(in: scratch)
    #expect(outcome.code == 0, "\(outcome)")
  }
}
