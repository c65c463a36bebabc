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

  @Test func `Doctor prints the verdict first, and then each missing mechanism with its remedy`() {
    #expect(
      DoctorDocument(shell: report).rendered(width: 60, color: false) == """
        Hibernation doesn't work here.
        dormouse 1.2.3 on Linux 6.18.0, as user 1000

        a cgroup: missing
          without it  Workers are stopped instead.
          to enable   systemd-run --user -p Delegate=yes

        1 of 2 mechanisms work; `dormouse doctor -v` lists them all.

        """)
  }

  @Test func `Doctor's verbose output lists all checks and the consequences of missing mechanisms`()
  {
    #expect(
      DoctorDocument(shell: report).rendered(width: 60, color: false, isVerbose: true) == """
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

  @Test func `Doctor's output fits a terminal even if many mechanisms are missing`() {
    var report = report
    report.checks = (0..<30).map { number in
      DoctorCheck(
        id: "\(number)", name: "mechanism \(number)", need: number == 7 ? .required : .useful,
        result: .missing, found: "", lost: "",
        enable: String(repeating: "do this, and that ", count: 8))
    }
    let lines = DoctorDocument(shell: report).rendered(width: 80, color: false).split(
      separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 26)
    #expect(lines.first { $0.hasPrefix("mechanism") } == "mechanism 7: missing")
    #expect(lines.contains { $0.hasPrefix("Missing, too, or limited: mechanism ") })
    #expect(lines.contains { $0.contains(", and ") && $0.hasSuffix(" more.") })
  }

  private let context = DaemonContext(
    pid: 812, user: 0, cgroup: "/sys/fs/cgroup/dormouse", capabilities: ["kill", "sys_ptrace"],
    freezer: CodedText("cgroup_v2_freezer", "cgroup-v2 freezer"),
    hibernation: CodedText("enabled", "the policy hibernates workers"), hibernated: 1)

  private var ofDaemon: DoctorReport {
    var report = report
    report.user = 0
    report.checks[1].result = .works
    return report
  }

  @Test func `Doctor shows a daemon's cgroup and rights, and how the caller's shell differs`() {
    let document = DoctorDocument(
      daemon: DaemonExamination(context: context, report: ofDaemon), shell: report)
    #expect(document.differences.map(\.id) == ["cgroup"])
    #expect(
      document.rendered(width: 100, color: false) == """
        Hibernation doesn't work here.
        asked of the running daemon (pid 812): dormouse 1.2.3 on Linux 6.18.0, as user 0
        It suspends workers by cgroup-v2 freezer; the policy hibernates workers; 1 worker is \
        hibernated now.

        2 of 2 mechanisms work; `dormouse doctor -v` lists them all.

        Tried from your shell (user 1000), these are different: a cgroup (missing).

        """)
    let verbose = document.rendered(width: 100, color: false, isVerbose: true)
    #expect(verbose.contains("\ncgroup: /sys/fs/cgroup/dormouse\ncapabilities: kill, sys_ptrace\n"))
    let same = DoctorDocument(
      daemon: DaemonExamination(context: context, report: ofDaemon), shell: ofDaemon)
    #expect(
      same.rendered(width: 100, color: false).hasSuffix(
        "\nTried from your shell (user 0), all of it is the same.\n"))
  }

  @Test func `Doctor's output about a daemon fits a terminal`() {
    var (ours, theirs) = (report, report)
    ours.checks = (0..<30).map { number in
      DoctorCheck(
        id: "\(number)", name: "mechanism \(number)", need: .useful, result: .missing, found: "",
        lost: "", enable: "do this")
    }
    theirs.checks = ours.checks
    for index in ours.checks.indices { ours.checks[index].result = .works }
    let documents = [(theirs, ours), (ours, theirs)].map { first, second in
      DoctorDocument(daemon: DaemonExamination(context: context, report: first), shell: second)
    }
    for document in documents {
      let text = document.rendered(width: 80, color: false)
      #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 26, "\(text)")
      #expect(
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(
          "22 more (--shell lists them)"))
    }
  }

  @Test func `Doctor prints colours only on request`() {
    #expect(
      !DoctorDocument(shell: report).rendered(width: 80, color: false, isVerbose: true).contains(
        "\u{1B}"))
    #expect(
      DoctorDocument(shell: report).rendered(width: 80, color: true, isVerbose: true).contains(
        "\u{1B}[31mmissing\u{1B}[0m"))
  }

  @Test(arguments: [
    ("", 10, [""]), ("one", 2, ["one"]), ("one two", 7, ["one two"]),
    ("one two", 6, ["one", "two"]), ("a bb ccc", 4, ["a bb", "ccc"]),
  ])
  func `Doctor's lines break at blanks`(text: String, width: Int, lines: [String]) {
    #expect(wrapped(text, to: width) == lines)
  }

  @Test func `A probe that throws is reported as a missing mechanism with the reason`() {
    let probe = Probe(id: "x", name: "x", lost: "l", enable: "e") { _ in
      throw ProbeFailure("no luck")
    }
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
