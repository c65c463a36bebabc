import Glibc

@testable import Wrap

/// A program that notes what is done with it.
final class NotingProgram: ProgramProcesses {
  var hasProcess = true
  var isAsleep = false
  var caught: Set<Int32> = []
  var ignored: Set<Int32> = []
  var sharesGroup = true
  var groups: Set<Int32> = [100]
  var stopSignal: Int32?
  var losesStops = false
  var hasGroup = true
  var canBeFound = true
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
  func noteUse() { done.append("use") }
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
  func stopWrapper() { done.append("stop wrapper") }

  func take() -> [String] {
    defer { done = [] }
    return done
  }
}

final class NotingWitness: GroupWitness {
  var asked = 0
  var joined: [Int32] = []
  func ask() { asked += 1 }
  func join(_ group: Int32) { joined.append(group) }
}

final class NotingTerminal: JobTerminal {
  var foregroundGroup: Int32? = 100
  var given: [Int32] = []
  func give(to group: Int32) {
    given.append(group)
    foregroundGroup = group
  }
}
