import Control
import Linux

/// Measures how fast a program resumes from each kind of sleep, compared with a relaunch.
///
/// It needs no daemon: this process launches the program, puts it to sleep and wakes it, by the
/// daemon's mechanisms. Each round measures every mechanism and begins with a different one, so
/// that other load of the machine affects all alike.
public enum Bench {
  /// Runs the benchmark. It leaves no process, image, directory or cgroup behind, even if it fails.
  public static func run(
    _ options: BenchOptions, progress: @escaping (BenchProgress) -> Void = { _ in }
  ) throws(BenchError) -> BenchReport {
    do {
      let interruptions = try Interruptions()
      defer { interruptions.end() }
      let directory: BorrowedDirectory
      do throws(SystemCallError) {
        directory = try BorrowedDirectory(newIn: options.imageDirectory, prefix: "bench-")
      } catch {
        throw BenchError.directory(
          "can't use the state directory for images: \(escaped("\(error)"))")
      }
      defer { directory.end() }
      let subject = BenchSubject(options, directory: directory.usable, interruptions)
      defer { subject.end() }
      var run = BenchRun(subject, progress)
      return try run.run()
    } catch let error as BenchError {
      throw error
    } catch {
      throw .failed(escaped("\(error)"))
    }
  }
}

/// A run of the benchmark, round by round.
struct BenchRun {
  private let subject: BenchSubject
  private let progress: (BenchProgress) -> Void
  private var report: BenchReport
  private var finishedRounds = 0

  private var options: BenchOptions { subject.options }

  init(_ subject: BenchSubject, _ progress: @escaping (BenchProgress) -> Void) {
    self.subject = subject
    self.progress = progress
    let options = subject.options
    report = BenchReport(
      version: Dormouse.version, machine: .describe(), command: options.command,
      request: options.requestText, level: options.compression.level,
      rounds: options.rounds, rest: "",
      firstLaunchMilliseconds: 0,
      mechanisms: BenchMechanism.allCases.map { BenchMechanismResult($0) },
      hibernations: [], reconnections: 0)
  }

  mutating func run() throws -> BenchReport {
    try checkAddressIsFree()
    progress(BenchProgress(round: 0, rounds: options.rounds, mechanism: nil))
    report.firstLaunchMilliseconds = Double(try subject.launch()) / 1e6
    report.rest = subject.usesFreezer ? "frozen" : "traced"
    try subject.warmUp()
    do {
      for round in 0..<options.rounds {
        let count = report.mechanisms.count
        for turn in 0..<count { try measure((round + turn) % count, round: round) }
        finishedRounds += 1
      }
    } catch BenchError.interrupted where finishedRounds > 0 {
      // The rounds that are finished are as valid as a run with fewer rounds.
      report.isInterrupted = true
      report.rounds = finishedRounds
      subject.interruptions.discard()
    }
    report.machine.loadAfter = BenchMachine.currentLoad
    report.reconnections = subject.connection?.reconnections ?? 0
    for index in report.mechanisms.indices {
      report.mechanisms[index].statistics = BenchStatistics(report.mechanisms[index].milliseconds)
    }
    return report
  }

  /// Checks that no other program listens at the address: its answers would be measured instead.
  private func checkAddressIsFree() throws {
    if case .http(let address) = options.request, HTTPConnection.isInUse(address) {
      throw BenchError.program(
        "another program listens at \(escaped(address.host)); stop it, or let the program listen "
          + "elsewhere")
    }
  }

  private mutating func measure(_ index: Int, round: Int) throws {
    let mechanism = report.mechanisms[index].mechanism
    // A mechanism that was refused twice in a row and has never worked isn't tried again.
    if report.mechanisms[index].refusals > 1, report.mechanisms[index].milliseconds.isEmpty {
      return
    }
    progress(BenchProgress(round: round + 1, rounds: options.rounds, mechanism: mechanism))
    if mechanism == .relaunch, !options.launchCanBeTimed {
      report.mechanisms[index].refuse(
        "can't measure when the relaunch is complete: use --request, --ready-line or --ready-tcp")
      return
    }
    do {
      let nanoseconds = try subject.measure(mechanism) { report.hibernations.append($0) }
      report.mechanisms[index].milliseconds.append(Double(nanoseconds) / 1e6)
    } catch let refusal as MechanismRefusal {
      report.mechanisms[index].refuse(refusal.reason)
    } catch let error as BenchError {
      throw error
    } catch {
      throw try explained(error, mechanism)
    }
  }

  /// Returns the error to report. If the program has ended, that is the reason for any failure.
  private func explained(_ error: any Error, _ mechanism: BenchMechanism) throws -> BenchError {
    if try subject.running.life != .hasEnded {
      return .failed(escaped("\(mechanism.title): \(error)"))
    }
    return .program("the program ended during \(mechanism.title)\(subject.lastOutput)")
  }
}

extension BenchMechanismResult {
  fileprivate mutating func refuse(_ reason: String) {
    refusals += 1
    refusal = reason
  }
}

extension BenchOptions {
  var launchCanBeTimed: Bool { request != nil || readiness != nil }

  var requestText: String? {
    switch request {
    case .http(let address): "http://\(address.host)\(address.path)"
    case .command(let text): text
    case nil: nil
    }
  }
}
