import Control
import Glibc
import Testing

@testable import Doctor
@testable import Linux

/// Tests of doctor's report about the machine that runs them. They check that the report is
/// consistent, and not which mechanisms the machine has.
@Suite(.serialized) struct DoctorTests {
  @Test func `Doctor tries a whole hibernation of at least 1 MB, and reports its sizes and times`()
    throws
  {
    try withDirectory { directory in
      let report = Doctor.examine(
        stateDirectory: "\(directory)/state", socket: "\(directory)/control.sock")
      let trial = try #require(
        report.trial, "\(DoctorDocument(shell: report).rendered(width: 100, color: false))")
      #expect(report.hibernates)
      #expect(trial.movedBytes >= 1_000_000)
      #expect(trial.imageBytes > 0 && trial.imageBytes < trial.movedBytes)
      #expect(trial.hibernateSeconds > 0 && trial.resumeSeconds > 0)
      let frozen = report.checks.first { $0.id == "freezer" }?.result == .works
      #expect(trial.rest == (frozen ? .frozen : .traced))
    }
  }

  @Test func `Every mechanism has a name, a result, a loss, a remedy and a unique id`()
    throws
  {
    try withDirectory { directory in
      let report = Doctor.examine(
        stateDirectory: directory, socket: "\(directory)/control.sock")
      for check in report.checks {
        let texts = [check.id, check.name, check.found, check.lost, check.enable]
        #expect(!texts.contains(""), "\(check)")
      }
      #expect(Set(report.checks.map(\.id)).count == report.checks.count)
    }
  }

  @Test func `Doctor leaves no directory, socket, cgroup or child process behind`() throws {
    try withDirectory { directory in
      _ = Doctor.examine(
        stateDirectory: "\(directory)/a/b/state", socket: "\(directory)/run/control.sock")
      #expect(try listDirectory(directory) == [])
      let groups = try CgroupRoot.groupsOfThisProcess()
      for group in groups {
        #expect(try !listDirectory(group).contains("dormouse-doctor-\(getpid())"))
      }
      #expect(try shellsOfOurs().isEmpty)
    }
  }

  @Test func `Doctor leaves the mask of interrupting signals as it was before its checks`()
    throws
  {
    try withDirectory { directory in
      var before = sigset_t()
      var after = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &before)
      _ = Doctor.examine(stateDirectory: directory, socket: "\(directory)/control.sock")
      pthread_sigmask(SIG_BLOCK, nil, &after)
      for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        #expect(sigismember(&before, signal) == sigismember(&after, signal))
      }
    }
  }

  @Test func `A socket path that is too long is reported as missing with both lengths`() throws {
    try withDirectory { directory in
      let path = "\(directory)/\(String(repeating: "s", count: 120))"
      let report = Doctor.examine(stateDirectory: directory, socket: path)
      let check = try #require(report.checks.first { $0.id == "control-socket" })
      #expect(check.result == .missing)
      #expect(check.found.contains("\(path.utf8.count) bytes") && check.found.contains("107"))
    }
  }

  @Test func `Directories that the daemon refuses are reported as missing, and stay empty`() throws
  {
    try withDirectory { directory in
      #expect(chmod(directory, 0o777) == 0)
      for state in [directory, "\(directory)/none/state"] {
        let report = Doctor.examine(stateDirectory: state, socket: "\(directory)/control.sock")
        for id in ["state-directory", "control-socket"] {
          let check = try #require(report.checks.first { $0.id == id })
          #expect(check.result == .missing && "\(check)".contains("is not safe"), "\(check)")
        }
        #expect(try listDirectory(directory).isEmpty)
      }
    }
  }

  @Test func `Without a usable state directory, the trial uses a temporary one`() throws {
    try withDirectory { directory in
      _ = try Descriptor.open("\(directory)/file", O_WRONLY | O_CREAT, mode: 0o600)
      let report = Doctor.examine(
        stateDirectory: "\(directory)/file/state", socket: "\(directory)/control.sock")
      #expect(report.checks.first { $0.id == "state-directory" }?.result == .missing)
      #expect(report.hibernates)
      #expect(report.verdict.text.contains("The daemon doesn't start without a place for images."))
    }
  }

  /// Returns only children that run doctor's scripts: other tests have shells of their own.
  private func shellsOfOurs() throws -> [Int32] {
    let scripts = [ProbeChild.echo, HibernationTrial.script]
    return try listNumbers("/proc").filter { pid in
      guard let stat = try? ProcessStat.read(pid), stat.parent == getpid(),
        let command = try? readText("/proc/\(pid)/cmdline")
      else { return false }
      return scripts.contains { command.contains($0) }
    }
  }

  private func withDirectory(_ body: (String) throws -> Void) throws {
    let directory = try BorrowedDirectory(newIn: "/tmp", prefix: "dormouse-test-")
    defer { directory.end() }
    try body(directory.usable)
  }
}

@Suite struct PressureTriggerProbeTests {
  @Test func `The finding names the windows that were tried, also where only 2 s are permitted`()
    throws
  {
    let all = try Probe.triggers { _ in }
    #expect(all == .works("windows of 2 s and of 1 s"))
    let some = try Probe.triggers { window in
      guard window == .seconds(2) else { throw refusal(EINVAL, window) }
    }
    #expect(some.result == .works)
    #expect(some.detail.contains("windows of 2 s, and not of 1 s"))
  }

  @Test func `A refused window of 2 s makes notification missing, and no kernel version is named`()
    throws
  {
    let check = try #require(Doctor.probes.first { $0.id == "psi-trigger" })
    for code in [EPERM, EACCES] {
      let error = #expect(throws: PressureTriggerError.self) {
        try Probe.triggers { window in throw refusal(code, window) }
      }
      let message = try #require(error?.description)
      #expect(message.contains("/proc/pressure/memory") && message.contains("CAP_SYS_RESOURCE"))
      for text in [message, check.enable, check.lost] {
        #expect(text.firstMatch(of: /\d\.\d/) == nil, "\(text)")
      }
    }
  }

  private func refusal(_ code: Int32, _ window: Duration) -> PressureTriggerError {
    PressureTriggerError(
      cause: SystemCallError("open", on: PressureStall.systemMemoryPath, code: code),
      window: window)
  }
}

@Suite struct TrimProbeTests {
  private func finding(
    obstacle: String? = nil, madvise code: Int32 = 0, reclaims: Bool = false, borrows: Bool = false
  ) -> Finding {
    Probe.swapFinding(
      obstacle: obstacle,
      madvise: code == 0
        ? .success(()) : .failure(SystemCallError("process_madvise", on: "pid 1", code: code)),
      reclaims: reclaims, borrows: borrows)
  }

  @Test func `The finding about trims names the best mechanism that this user may use`() {
    #expect(finding(reclaims: true, borrows: true).result == .works)
    #expect(finding(reclaims: true, borrows: true).detail.hasPrefix("process_madvise"))
    #expect(finding(madvise: EPERM, reclaims: true, borrows: true).result == .works)
    #expect(
      finding(madvise: EPERM, reclaims: true, borrows: true).detail.hasPrefix("memory.reclaim"))
    let borrowed = finding(madvise: EPERM, borrows: true)
    #expect(borrowed.result == .limited)
    #expect(borrowed.detail.contains("borrowed thread") && borrowed.detail.contains("pid 1"))
    #expect(finding(madvise: EPERM).result == .missing)
  }

  @Test func `With userfaultfd trims work without swap, and the finding says which of both`() {
    let (off, on) = (finding(obstacle: "no swap is on"), finding())
    let image = Probe.trimFinding(swap: off, userfaultObstacle: nil)
    #expect(image.result == .works && image.detail.hasPrefix("userfaultfd, which needs no swap"))
    let both = Probe.trimFinding(swap: on, userfaultObstacle: nil)
    #expect(both.result == .works && both.detail.hasPrefix("process_madvise"))
    #expect(both.detail.hasSuffix("userfaultfd works, too"))
    for swap in [off, on] {
      let one = Probe.trimFinding(swap: swap, userfaultObstacle: "not permitted")
      #expect(one.result == swap.result)
      #expect(one.detail == "\(swap.detail); no userfaultfd: not permitted")
    }
  }

  @Test func `Without swap trims by swap are missing, and the finding says so for each mechanism`()
  {
    let findings = [
      finding(obstacle: "no swap is on", reclaims: true, borrows: true),
      finding(obstacle: "no swap is on", madvise: EPERM, reclaims: true),
      finding(obstacle: "no swap is on", madvise: EPERM, borrows: true),
      finding(obstacle: "no swap is on", madvise: EPERM),
    ]
    for finding in findings {
      #expect(finding.result == .missing)
      #expect(finding.detail.hasPrefix("no swap is on"))
    }
  }
}

@Suite struct DoctorDocumentationTests {
  @Test func `Every mechanism is documented under its id`() throws {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let text = try readText("\(root)/docs/doctor.md")
    for probe in Doctor.probes {
      #expect(text.contains("\n| `\(probe.id)` |"), "\(probe.id)")
    }
  }
}
