@testable import Wrap

/// A program that records the calls.
final class RecordingProgram: ProgramProcesses {
  var hasProcess = true
  var isAsleep = false
  var isBeingTrimmed = false
  var caught: Set<Int32> = []
  var ignored: Set<Int32> = []
  var sharesGroup = true
  var groups: Set<Int32> = [100]
  var stopSignal: Int32?
  var losesStops = false
  var hasGroup = true
  var canBeFound = true
  var foregroundGroup: Int32? = 100
  /// The groups that were given the terminal.
  private(set) var given: [Int32] = []
  /// The number of times that the witness was asked.
  private(set) var asked = 0
  /// The groups that the witness was moved to.
  private(set) var joined: [Int32] = []
  private(set) var reaped = 0
  private(set) var done: [String] = []

  func catches(_ signal: Int32) -> Bool { caught.contains(signal) }
  func ignores(_ signal: Int32) -> Bool { ignored.contains(signal) }
  func wake(_ reason: String) { done.append("wake: \(reason)") }
  func signal(_ signal: Int32) { done.append("signal \(signal)") }
  func signal(_ signal: Int32, group: Int32) { done.append("signal \(signal) to \(group)") }
  var isStoppingWrapper = false
  var isJobOfShell = true
  var hasDroppedStop = false
  func stopWrapper(by signal: Int32) {
    done.append("stop wrapper \(signal)")
    isStoppingWrapper = true
  }
  func recordUse() { done.append("use") }
  func reportStops(_ reported: Bool) {}
  func reap() { reaped += 1 }
  func signalGroup(_ signal: Int32) -> Bool {
    if hasGroup { done.append("group \(signal)") }
    return hasGroup
  }
  func stopAll() -> Bool {
    if canBeFound { done.append("stop all") }
    return canBeFound
  }
  func continueAll() { done.append("continue all") }
  func giveTerminal(to group: Int32) {
    given.append(group)
    foregroundGroup = group
  }
  func askWitness() { asked += 1 }
  func putWitness(into group: Int32) { joined.append(group) }
  func stopWrapper() { done.append("stop wrapper") }

  func drain() -> [String] {
    defer { done = [] }
    return done
  }
}
