import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Images that are damaged") struct DamageTests {
  enum Damage: String, CaseIterable, CustomTestStringConvertible {
    case missing, bytesInMiddle

    var testDescription: String { rawValue }

    func inflict(on path: String) throws {
      if self == .missing {
        unlink(path)
        return
      }
      var bytes = try readFile(path)
      // A single flipped bit in a zstd frame may change nothing of what is decompressed: a match is
      // copied from another place with the same bytes. Such an image is right.
      for offset in 0..<64 { bytes[bytes.count / 2 + offset] ^= 0x10 }
      let file = try Descriptor.open(path, O_WRONLY | O_TRUNC)
      let written = bytes.withUnsafeBytes { write(file.raw, $0.baseAddress, $0.count) }
      if written != bytes.count { throw TestFailure("write") }
    }
  }

  /// HibernationTests has other kinds of damage (`DamagedImageTests`).
  @Test(
    "A worker with a damaged image is terminated with a one-line error, and can be started again",
    arguments: Damage.allCases, Nightly.one(of: Setting.ofTestUser))
  func damagedImage(damage: Damage, setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    try web.waitUntilReady(under: daemon)
    try daemon.done("hibernate", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try damage.inflict(on: "\(daemon.state)/images/web.image")

    let outcome = try daemon.verb("wake", "web")
    // A frozen worker is restored lazily. It may run already when a damaged page is read, and is
    // terminated then.
    let mayRunFirst = damage == .bytesInMiddle && setting == .frozen
    if !mayRunFirst || outcome.code != 0 {
      #expect(outcome.code == 1)
      #expect(outcome.error.split(separator: "\n").count == 1)
      #expect(outcome.error.hasPrefix("dormouse: web is terminated: "), "\(outcome)")
    }
    try daemon.wait("web", toBe: "terminated")
    #expect(hasEnded(pid))
    #expect(try daemon.worker("web").lastExit?.text == "ended by SIGKILL", "\(daemon.logText)")
    #expect(try eventually { try listDirectory("\(daemon.state)/images").isEmpty })
    try daemon.done("start", "web")
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }
}
