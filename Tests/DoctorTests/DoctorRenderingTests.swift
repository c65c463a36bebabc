import Control
import Testing

@testable import Doctor

@Suite struct DoctorRenderingTests {
  private let report = DoctorReport(
    version: "1.2.3", kernel: "6.18.0", user: 1000,
    checks: [
      DoctorCheck(
        id: "pidfd", name: "process descriptors", need: .required, result: .works,
        found: "both calls", lost: "Everything.", enable: "Linux 5.3."),
      DoctorCheck(
        id: "cgroup", name: "a cgroup", need: .useful, result: .missing,
        found: "Permission denied, and a long tale of how it came to that",
        lost: "Workers are stopped instead.", enable: "systemd-run --user -p Delegate=yes"),
    ], trial: nil, verdict: CodedText("hibernation_missing", "Hibernation doesn't work here."))

  @Test func `The verdict comes first, and then what doesn't work with its remedy`() {
    #expect(
      report.rendered(width: 60, color: false) == """
        Hibernation doesn't work here.
        dormouse 1.2.3 on Linux 6.18.0, as user 1000

        a cgroup: missing
          to enable   systemd-run --user -p Delegate=yes

        1 of 2 mechanisms work; `dormouse doctor -v` lists them all.

        """)
  }

  @Test func `All that was tried, and what is lost, is said on demand`() {
    #expect(
      report.rendered(width: 60, color: false, isVerbose: true) == """
        Hibernation doesn't work here.
        dormouse 1.2.3 on Linux 6.18.0, as user 1000

        MECHANISM            RESULT   FOUND
        process descriptors  works    both calls
        a cgroup             missing  Permission denied, and a long
                                      tale of how it came to that

        a cgroup: missing
          without it  Workers are stopped instead.
          to enable   systemd-run --user -p Delegate=yes

        """)
  }

  @Test func `However much is missing, the answer fits a terminal`() {
    var report = report
    report.checks = (0..<30).map { number in
      DoctorCheck(
        id: "\(number)", name: "mechanism \(number)", need: number == 7 ? .required : .useful,
        result: .missing, found: "", lost: "",
        enable: String(repeating: "do this, and that ", count: 8))
    }
    let lines = report.rendered(width: 80, color: false).split(
      separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 26)
    #expect(lines.first { $0.hasPrefix("mechanism") } == "mechanism 7: missing")
    #expect(lines.contains { $0.hasSuffix("more don't work, or only partly.") })
  }

  @Test func `Colour is there only when it is wanted`() {
    #expect(!report.rendered(width: 80, color: false, isVerbose: true).contains("\u{1B}"))
    #expect(
      report.rendered(width: 80, color: true, isVerbose: true).contains(
        "\u{1B}[31mmissing\u{1B}[0m"))
  }

  @Test(arguments: [
    ("", 10, [""]), ("one", 2, ["one"]), ("one two", 7, ["one two"]),
    ("one two", 6, ["one", "two"]), ("a bb ccc", 4, ["a bb", "ccc"]),
  ])
  func `Lines break at blanks`(text: String, width: Int, lines: [String]) {
    #expect(wrapped(text, to: width) == lines)
  }

  @Test func `A probe that throws is a mechanism that is missing, with the reason`() {
    let probe = Probe("x", "x", lost: "l", enable: "e") { _ in throw ProbeFailure("no luck") }
    let check = probe.run(Examination(stateDirectory: "/", socket: "/s"))
    #expect(check.result == .missing && check.found == "no luck")
  }

  @Test func `The type of a file's mount is found by the mount's number`() {
    let mounts = """
      22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
      222 22 0:30 / /tmp rw,nosuid - tmpfs tmpfs rw,size=8k
      """
    let information = "pos:\t0\nflags:\t0100001\nmnt_id:\t222\nino:\t5\n"
    #expect(FileSystem.type(descriptorInformation: information, mounts: mounts) == "tmpfs")
    #expect(FileSystem.type(descriptorInformation: "mnt_id:\t22", mounts: mounts) == "ext4")
    #expect(FileSystem.type(descriptorInformation: "mnt_id:\t2", mounts: mounts) == nil)
    #expect(FileSystem.type(descriptorInformation: "", mounts: mounts) == nil)
  }
}
