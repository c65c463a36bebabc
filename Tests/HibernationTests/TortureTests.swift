import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// The torture victim checks its whole heap, stacks, thread-locals, and each of its system calls.
@Suite(.serialized)
struct TortureTests {
  @Test(
    "A process with a thread in every kind of blocking call keeps every byte over many rounds",
    arguments: Nightly.one(of: Victim.Parking.available), [false, true])
  func manyRounds(parking: Victim.Parking, hasOlderKernel: Bool) throws {
    // This machine's kernel decides which threads may write read-only pages, and read what the
    // process can't.
    var features = KernelFeatures.detect()
    if hasOlderKernel {
      features.pagemapScan = false
      features.processMadviseSelf = false
      features.writeTracking = false
    }
    let service = HibernationService(features: features)
    let victim = try Victim(ready: "torture", "8", "16", "7", parking: parking)
    let sum = try victim.ask("sum")
    for round in 1...(hasOlderKernel ? 5 : Nightly.rounds(20, of: 100)) {
      let path = Fixture.imagePath()
      let before = try victim.anonymousMemory()
      #expect(try victim.sleep(service, at: path).moved > 8 << 20)
      #expect(try victim.anonymousMemory() <= 64 * pageSize, "of \(before)")
      try victim.wake(service, from: path)
      try #require(try victim.ask("sum") == sum, "round \(round)")
    }
    #expect(try victim.ask("wake").hasPrefix("woke"))
    #expect(try victim.ask("errors") == "errors 0 eintr 0")
  }

  @Test(.enabled(if: geteuid() != 0 || Program.find("setpriv") != nil, "setpriv is not installed"))
  func `An ordinary user's workers keep every byte`() throws {
    let torture = try Fixture.compile("torture")
    let directory = Fixture.imagePath()
    _ = try systemCall("mkdir", on: directory) { mkdir(directory, 0o700) }
    var prefix: [String] = []
    var probe = Probe.executable
    if geteuid() == 0 {
      // Other users may not be able to read the build directory.
      probe = try Fixture.copy(probe)
      chown(directory, 65534, 65534)
      prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    }
    let uid = geteuid() == 0 ? 65534 : geteuid()
    let answer = try Probe.run(
      ["selfcheck", "20", directory, "--", torture, "8", "14", "3"], prefix: prefix,
      executable: probe)
    #expect(answer == "kept 20 rounds as uid \(uid)\n")
  }
}
