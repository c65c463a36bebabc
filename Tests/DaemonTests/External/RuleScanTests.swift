import DaemonFakes
import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("A scan for the processes that rules match") struct RuleScanTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  /// A process that a rule recognizes by a directory in its command line.
  private final class Program {
    let process: SpawnedProcess
    var pid: Int32 { process.pid }
    var identity: ProcessIdentity { process.identity }

    init(_ arguments: [String]) throws {
      process = try .forTest(arguments, ["PATH": "/usr/bin:/bin"])
    }

    deinit { end() }

    func end() {
      // A process that can't be killed has ended.
      try? ProcessTree.killAll(root: process.identity, session: process.pid)
      while waitpid(process.pid, nil, 0) < 0, errno == EINTR {}
    }
  }

  private func rule(_ change: (inout ProcessPattern) -> Void = { _ in }) -> AdoptionRule {
    var pattern = ProcessPattern()
    pattern.command = [Glob("*\(scratch.path)*")]
    change(&pattern)
    return AdoptionRule(name: "r", matches: [pattern])
  }

  private func scan(
    _ rule: AdoptionRule, entries: [Int32: RuleScan.Entry] = [:], later: Duration = .zero
  ) -> RuleScan {
    RuleScan(
      matching: RuleMatching(rules: [rule]), owned: [:], released: [], entries: entries,
      now: EventLoop.now + later)
  }

  private func sleeper() throws -> Program {
    let program = try Program(["/bin/sh", "-c", "sleep 60; true", "\(scratch.path)/x"])
    let isThere = try eventually {
      ProcessDetails.command(of: program.pid)?.contains("\(scratch.path)/x") == true
        && !children(of: program.pid).isEmpty
    }
    #expect(isThere)
    return program
  }

  private func match(
    _ scan: RuleScan, _ pid: Int32
  ) throws -> RuleScan.Matched? {
    try #require(scan.perform()).matches.first { $0.process.pid == pid }?.matched
  }

  private func refusal(_ scan: RuleScan, _ pid: Int32) throws -> String? {
    if case .refused(let reason)? = try match(scan, pid) { reason } else { nil }
  }

  @Test func `A process that matches is found with its command, and its child isn't`() throws {
    let program = try sleeper()
    let outcome = try #require(scan(rule()).perform())
    let match = outcome.matches.filter { $0.process == program.identity }
    #expect(match.map(\.matched) == [.ready])
    #expect(match.first?.command.last == "\(scratch.path)/x")
    #expect(outcome.listed > 1 && outcome.read >= outcome.matches.count)
  }

  @Test func `A process that blocks other scans isn't read, and its children are`() throws {
    let program = try sleeper()
    var scan = scan(rule())
    scan.passedOver = [program.identity]
    #expect(try match(scan, program.pid) == nil)
    #expect(scan.progress.reading == nil)
    // Until it executes its program, a child has its parent's command.
    var child: Int32 = 0
    try #require(
      try eventually {
        child = children(of: program.pid).first ?? 0
        return ProcessDetails.command(of: child)?.first == "sleep"
      })
    var shell = rule()
    shell.matches[0].command = [Glob("sleep 60")]
    scan = self.scan(shell)
    scan.passedOver = [program.identity]
    #expect(try match(scan, child) == .ready)
  }

  @Test func `A process whose ancestor matches belongs to it`() throws {
    let inner = "exec -a \(scratch.path)/inner sleep 60 & wait"
    let program = try Program(["/bin/bash", "-c", inner, "\(scratch.path)/outer"])
    var child: Int32?
    let isThere = try eventually {
      child = children(of: program.pid).first {
        ProcessDetails.command(of: $0)?.first == "\(scratch.path)/inner"
      }
      return child != nil
    }
    try #require(isThere)
    let pid = try #require(child)
    #expect(try match(scan(rule()), pid) == .contained(program.pid))
    #expect(try match(scan(rule()), program.pid) == .ready)
  }

  @Test func `A process that is too young or too small is found with what is missing`() throws {
    let program = try sleeper()
    let young = scan(rule { $0.olderThan = .seconds(3600) })
    guard case .tooYoung(let remaining) = try match(young, program.pid) else {
      Issue.record("it isn't too young")
      return
    }
    #expect(remaining > .seconds(3000) && remaining <= .seconds(3600))
    let large = scan(rule { $0.minFootprint = .gigabytes(64) })
    guard case .tooSmall(let size, let minimum) = try match(large, program.pid) else {
      Issue.record("it isn't too small")
      return
    }
    #expect(size != nil && minimum == .gigabytes(64))
  }

  @Test func `A worker's processes aren't matched, and a released process isn't adopted`() throws {
    let program = try sleeper()
    var owned = scan(rule())
    owned.owned = [program.pid: program.identity.startTime]
    #expect(try match(owned, program.pid) == nil)
    // Another process has the pid now.
    owned.owned = [program.pid: program.identity.startTime - 1]
    owned.matching.rules[0].limit = 1
    #expect(try match(owned, program.pid) == .ready)
    var released = scan(rule())
    released.released = [program.identity]
    #expect(try match(released, program.pid) == .released)
  }

  @Test func `A stopped process isn't adopted, with the reason`() throws {
    let program = try sleeper()
    kill(program.pid, SIGSTOP)
    #expect(try eventually { try ProcessStat.read(program.pid).state == .stopped })
    #expect(try refusal(scan(rule()), program.pid)?.contains("is stopped") == true)
  }

  @Test func `A wrapper and what runs under it are left to the wrapper`() throws {
    let source = """
      import subprocess, sys
      with open("/proc/self/comm", "w") as file: file.write("\(WrapperTree.processName)")
      subprocess.run(["sh", "-c", "sleep 60; true", sys.argv[1]])
      """
    let program = try Program(["/usr/bin/python3", "-c", source, "\(scratch.path)/x"])
    #expect(try eventually { !children(of: program.pid).isEmpty })
    let child = try #require(children(of: program.pid).first)
    // Until it executes the shell, the child has its parent's command.
    #expect(try eventually { ProcessDetails.command(of: child)?.first == "sh" })
    for (pid, command) in [(program.pid, "*python3*"), (child, "sh *")] {
      let only = rule { $0.command = [Glob("\(command)\(scratch.path)*")] }
      let reason = try refusal(scan(only), pid)
      #expect(reason?.contains("another Dormouse") == true, "\(command): \(reason ?? "none")")
    }
  }

  @Test func `A worker of another daemon isn't adopted after that daemon has been replaced`() throws
  {
    guard let root = try? CgroupRoot.detect(name: "dormouse-test-\(getpid())-replaced") else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    defer { root.remove() }
    let group = try WorkerCgroup.create(in: root, name: "web")
    defer { try? group.remove(until: Deadline(in: .seconds(60))) }
    let program = try sleeper()
    defer { program.end() }
    #expect(try match(scan(rule()), program.pid) == .ready)
    try group.add(program.pid)
    let reason = try refusal(scan(rule()), program.pid)
    #expect(reason?.contains("in the cgroup of a worker") == true, "\(reason ?? "none")")
  }

  @Test func `A process that matches nothing isn't read for 40 s, unless it is young`() throws {
    let program = try sleeper()
    let nothing = rule { $0.name = [Glob("no-such-name")] }
    let first = try #require(scan(nothing).perform())
    let again = try #require(scan(nothing, entries: first.entries, later: .seconds(5)).perform())
    #expect(again.listed >= first.entries.count / 2)
    #expect(again.read < first.read)
    // The process is young: it may execute another program at any moment.
    #expect(first.entries[program.pid].map { $0.due <= EventLoop.now } == true)
    #expect(try #require(first.entries[1]).due > EventLoop.now + .seconds(30))
    let late = scan(nothing, entries: first.entries, later: .seconds(61))
    #expect(try #require(late.perform()).read >= first.read / 2)
  }

  @Test func `A process that becomes another program is noticed within a minute`() throws {
    let wait = "while [ ! -e \(scratch.path)/go ]; do sleep 0.05; done"
    let program = try Program(
      ["/bin/bash", "-c", "\(wait); exec -a \(scratch.path)/y sleep 60"])
    let first = try #require(scan(rule()).perform())
    #expect(first.matches.contains { $0.process.pid == program.pid })
    let plain = rule { $0.command = [Glob("\(scratch.path)/y *")] }
    let before = try #require(scan(plain).perform())
    #expect(!before.matches.contains { $0.process.pid == program.pid })
    try scratch.write("go", "")
    let isOther = try eventually {
      ProcessDetails.command(of: program.pid)?.first == "\(scratch.path)/y"
    }
    #expect(isOther)
    let after = try #require(scan(plain, entries: before.entries, later: .seconds(61)).perform())
    #expect(after.matches.contains { $0.process.pid == program.pid })
  }
}

@Suite("Processes that were released from a rule") struct ReleasedProcessesTests {
  private let files = FakeStateFiles()

  @Test func `They are remembered for the next daemon of the same boot`() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/released"
    let rule = AdoptionRule(name: "r", matches: [])
    let process = try ProcessIdentity.current(of: getpid())
    let released = ReleasedProcesses(path: path, bootID: "boot", files: files)
    #expect(released.processes.isEmpty)
    released.add(process, from: rule) { _ in }
    #expect(released.processes == [process])
    try scratch.write("released", try #require(files.texts[path]))
    let next = ReleasedProcesses(path: path, bootID: "boot", files: files)
    #expect(next.processes == [process])
    next.keepOnly([rule]) { _ in }
    #expect(next.processes == [process])
    #expect(ReleasedProcesses(path: path, bootID: "later", files: files).processes.isEmpty)
    next.keepOnly([]) { _ in }
    #expect(next.processes.isEmpty)
  }
}

@Suite("The wait for a scan of rules") struct ScanWaitTests {
  private let timers = FakeLoop()

  @Test func `A scan that reads one process for 2 s is given up, and its outcome comes too late`() {
    let progress = ScanProgress()
    var outcomes: [Int?] = []
    let wait = ScanWait(for: progress, timers) { outcomes.append($0?.listed) }
    timers.advance(by: .seconds(6))
    progress.reading(ProcessIdentity(pid: 8, startTime: 5)) { timers.advance(by: .seconds(2)) }
    // The scan reads another process now, so it isn't ended early.
    progress.reading(ProcessIdentity(pid: 9, startTime: 5)) {
      timers.advance(by: .seconds(2))
      #expect(outcomes.isEmpty)
      timers.advance(by: .seconds(2))
    }
    wait.end(RuleScan.Outcome())
    #expect(outcomes == [nil] && timers.pending.isEmpty)
  }

  @Test func `A scan that ends in time is waited for no longer`() {
    var outcomes: [Int?] = []
    let wait = ScanWait(for: ScanProgress(), timers) { outcomes.append($0?.listed) }
    wait.end(RuleScan.Outcome())
    timers.advance(by: .seconds(60))
    #expect(outcomes == [0] && timers.pending.isEmpty)
  }
}
