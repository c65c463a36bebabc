import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// Files can't be opened while a trimmed worker is hibernated.
@Suite(.serialized, .needsUserfaults)
struct TrimShortageTests {
  private let service = HibernationService()

  private func wakeSuspended(_ target: HibernationTarget, image path: String) throws {
    if try service.freezeTrimmed(target.name) != nil {
      try service.serveTrimmed(target, image: path)
    }
    try target.wake(target.restartInterruptedSyscalls())
  }

  @Test("A hibernation of a trimmed worker that can't open files, nor undo it, loses nothing")
  func undone() throws {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    let request = HibernationRequest(target, to: path, restore: .eager)
    var failed = 0
    for step in 0... {
      try service.trim(target, to: path)
      _ = try service.freezeTrimmed(target.name)
      let fault = InjectedFault(ENOMEM, at: step..<(step + 3))
      do throws(HibernationError) {
        _ = try service.wait { (h) throws(HibernationError) in
          try fault.during {
            Result { () throws(HibernationError) in try h.hibernate(request) }
          }.get()
        }
        try service.wait { (h) throws(HibernationError) in
          _ = try h.resume(target, from: RestingImage(path: path, .eager))
        }
      } catch {
        failed += 1
        try #require(error.aftermath == .intact, "\(step): \(error)")
        try wakeSuspended(target, image: path)
      }
      try #require(try victim.isWhole, "\(step)")
      if fault.subjects.count <= step { break }
    }
    #expect(failed > 5)
  }

  /// After an error the caller starts another pager, and two would use the same journal.
  @Test func `If files can't be opened, a pager is started or an error is thrown, never both`()
    throws
  {
    let (victim, path) = try Victim.ready(Fixture.churn("drops"))
    let target = victim.target
    try service.trim(target, to: path)
    var failed = 0
    for step in 0... {
      // The pager of the last round thaws it first.
      #expect(try eventually { (try? service.freezeTrimmed(target.name)) != nil })
      let fault = InjectedFault(ENOMEM, at: step..<(step + 1))
      let isStarted = try service.wait { (h) throws(HibernationError) in
        guard let fill = h.fills[target.name], let missing = fill.handedOver else { return false }
        let outcome = fault.during {
          Result { () throws(HibernationError) in
            try h.serve(
              target, from: missing.image, missing.processes.map(\.paged), missing: fill.missing)
          }
        }
        if (try? outcome.get()) == true { return true }
        #expect(h.fills[target.name] === fill, "\(fault.subjects)")
        return false
      }
      if !isStarted {
        failed += 1
        try wakeSuspended(target, image: path)
      }
      if fault.subjects.count <= step { break }
    }
    #expect(failed > 0)
    #expect(try victim.isWhole)
  }

  @Test("The kernel's error for a worker that executes another program by now isn't a shortage")
  func executed() throws {
    let (victim, path) = try Victim.ready([try Fixture.compile("layers"), "64"])
    let target = victim.target
    try service.trim(target, to: path)
    _ = try service.freezeTrimmed(target.name)
    let fill = try service.wait { (h) throws(HibernationError) in h.fills[target.name] }
    let process = try #require(fill?.handedOver?.processes.first)
    try wakeSuspended(target, image: path)
    #expect(try victim.ask("exec").hasPrefix("ready"))
    try process.paged.handle.userfault.unregisterAllOfFrozen()
    #expect(try victim.ask("verify") == "same")
  }
}
