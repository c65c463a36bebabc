import CLinux
import Hibernation
import Lifecycle
import Linux
import Supervision

/// Wakes the workers of a daemon that has ended, if no other daemon follows it (`dormouse
/// recover`).
///
/// The workers then run without a manager, and their records stay: a daemon that starts later finds
/// them. Nothing else is left: no image, no stopped process, no frozen process.
public struct OfflineRecovery {
  private let state: StateDirectory
  private let records: WorkerRecordStore
  private let processes: any Processes
  private let bootID: String
  private let hibernator = Hibernator()

  /// The outcome for one worker.
  public struct Outcome: Sendable {
    /// What happened, in one sentence.
    public var text: String
    /// Whether the worker still sleeps, was terminated, or runs without a correct record.
    public var isFailure: Bool
    /// The worker's name; nil if a record can't be read and so the worker isn't known.
    public var worker: String?
  }

  /// Takes the state directory's lock, which a running daemon has.
  ///
  /// - Parameter stateDirectory: the path of the ended daemon's state directory.
  /// - Throws: `StartError.inUse` if a daemon runs, because that daemon manages its workers;
  ///   another `StartError` if the directory can't be used.
  public init(stateDirectory: String) throws(StartError) {
    clinux_stay_out_of_core_files()
    let state = try StateDirectory(path: stateDirectory)
    let bootID: String
    do throws(SystemCallError) { bootID = try BootMark.current() } catch { throw .system(error) }
    try self.init(state, KernelProcesses(), bootID: bootID)
  }

  init(
    _ state: StateDirectory, _ processes: any Processes, bootID: String
  ) throws(StartError) {
    self.state = state
    self.processes = processes
    self.bootID = bootID
    do throws(WorkerRecordError) {
      records = try WorkerRecordStore(directory: state.workers)
    } catch { throw .records(error) }
  }

  /// The workers that still run, such as `web (pid 4711)`, and an error for each record that can't
  /// be read. Workers of another supervisor aren't in it.
  public var livingWorkers: [String] {
    do throws(WorkerRecordError) {
      let loaded = try records.loadAll()
      return loaded.records.filter { $0.external == nil && lives($0) }
        .map { "\($0.name) (pid \($0.process.pid))" } + loaded.failures.map { "\($0)" }
    } catch { return ["\(error)"] }
  }

  private func lives(_ record: WorkerRecord) -> Bool {
    processes.life(of: record, bootID: bootID) != .hasEnded
  }

  /// Wakes the workers one after the other, in the order of their names. It waits until each is
  /// awake or has failed.
  ///
  /// - Parameter report: called with the outcome of each worker, on the calling thread.
  public func run(_ report: (Outcome) -> Void) {
    do throws(WorkerRecordError) {
      let loaded = try records.loadAll()
      for record in loaded.records where lives(record) {
        var outcome = recover(record.correctedByNote())
        outcome.worker = record.name
        report(outcome)
      }
      for failure in loaded.failures { report(Outcome(text: "\(failure)", isFailure: true)) }
    } catch {
      report(Outcome(text: "can't look for workers: \(error)", isFailure: true))
    }
  }

  private func recover(_ record: WorkerRecord) -> Outcome {
    let name = record.name
    let path = state.image(of: name)
    do {
      let target = try target(of: record)
      do throws(HibernationError) {
        try Hibernator.repairTrim(record: state.trimRecord(of: name), of: record.process)
        if let absence = ImageExpectation.of(record).absence(of: path) { throw absence }
        let restored = try processes.recover(
          target, by: hibernator, from: path, expecting: .of(record)
        ) { saveAwake(record) }
        return ran(record, restored: restored)
      } catch {
        switch error.aftermath {
        case .vanished: return Outcome(text: "\(name): has already ended", isFailure: false)
        case .unverifiable: return end(record, target: target, reason: "\(error)")
        case .intact, .ineligible:
          return Outcome(
            text: "\(name): can't be woken: \(error); it stays asleep", isFailure: true)
        }
      }
    } catch { return Outcome(text: "\(name): can't be woken: \(error)", isFailure: true) }
  }

  private func target(of record: WorkerRecord) throws -> HibernationTarget {
    HibernationTarget(
      name: record.name, root: record.process, session: record.session,
      cgroup: try record.cgroup(), waits: record.waits.map { TimedWaits($0) } ?? TimedWaits())
  }

  private func ran(_ record: WorkerRecord, restored: UInt64) -> Outcome {
    var text = "\(record.name): runs as pid \(record.process.pid)"
    if restored > 0 { text += ", \(restored >> 10) KB of memory restored" }
    if let failure = saveAwake(record) {
      return Outcome(text: "\(text); \(failure)", isFailure: true)
    }
    return Outcome(text: text, isFailure: false)
  }

  /// Saves the record of a worker that is awake.
  ///
  /// - Returns: what failed; nil if the record is saved.
  private func saveAwake(_ record: WorkerRecord) -> String? {
    var awake = record
    awake.state = WorkerState.background.rawValue
    awake.imagePath = nil
    awake.imageMark = nil
    return failureText { try records.save(awake) }.map { "its record can't be written: \($0)" }
  }

  /// Ends a worker whose memory can't be verified, so that it never runs again.
  private func end(
    _ record: WorkerRecord, target: HibernationTarget, reason: String
  ) -> Outcome {
    let text = "\(record.name): terminated: its memory can't be restored: \(reason)"
    do { try processes.end(record, target) } catch {
      return Outcome(text: "\(text); ending it failed: \(error)", isFailure: true)
    }
    // Its base is removed, too. An image that other processes need stays.
    Hibernator.removeUnlessNeeded(state.image(of: record.name), isUnreadableNeeded: false)
    records.remove(record.name)
    return Outcome(text: text, isFailure: true)
  }
}
