import TestSupport
import Testing

@testable import Linux

@Suite("Threads at work") struct ThreadAtWorkTests {
  @Test func `A stopped process shows whether it was computing or waiting`() throws {
    let busy = try TestChild("sh", "-c", "echo up; while :; do :; done")
    let idle = try TestChild("sh", "-c", "echo up; sleep 61; true")
    for child in [busy, idle] { #expect(try child.line() == "up") }
    // Both shells have executed their `echo`, and the second waits for its child, which has
    // executed its program. Before that, a shell that used vfork can't be stopped.
    #expect(try eventually { try idle.tree().processes.contains { $0.name == "sleep" } })
    let haveStopped = try eventually {
      let thread = try Self.busyThread(in: busy.stopTree())
      try busy.tree().continueAll()
      return thread == busy.pid
    }
    #expect(haveStopped)
    let waits = try eventually {
      let thread = try Self.busyThread(in: idle.stopTree())
      try idle.tree().continueAll()
      return thread == nil
    }
    #expect(waits)
  }

  /// Finds a thread that isn't idle, as a suspension does.
  private static func busyThread(in tree: ProcessTree) -> Int32? {
    tree.threadAtWork ?? tree.threadWithResult(until: Deadline(in: .seconds(60)))
  }

  /// On arm64 all stopped threads look as if they computed.
  @Test func `Where a stop hides the calls of threads, their registers show which one computes`()
    throws
  {
    let busy = try TestChild("sh", "-c", "echo up; while :; do :; done")
    #expect(try busy.line() == "up")
    let isShown = try eventually {
      let tree = try busy.stopTree()
      let thread = tree.threadWithResult(until: Deadline(in: .seconds(60)))
      #expect(tree.threadAtWork(callsAreHidden: true) == nil)
      try tree.continueAll()
      return thread == busy.pid
    }
    #expect(isShown)
  }

  @Test("A thread that runs is waited for until the deadline, and a stopped one isn't")
  func onItsWay() throws {
    let busy = try TestChild("sh", "-c", "echo up; while :; do :; done")
    #expect(try busy.line() == "up")
    let isSeen = try eventually {
      try busy.tree().threadOnItsWay(until: Deadline(in: .milliseconds(20))) == busy.pid
    }
    #expect(isSeen)
    let tree = try busy.stopTree()
    #expect(tree.threadOnItsWay(until: Deadline(in: .seconds(60))) == nil)
    try tree.continueAll()
  }

  @Test func `A process's own descendants are found without reading all processes`() throws {
    let child = try TestChild("sh", "-c", "sleep 61 & sleep 62 & echo up; wait")
    #expect(try child.line() == "up")
    #expect(try eventually { try child.tree().processes.count == 3 })
    // While other tests' children are reaped, the kernel's list may leave some out.
    let areListed = try eventually {
      let tree = try ProcessScan.readDescendants()
        .tree(root: child.process.identity, session: child.pid)
      return try Set(tree.pids) == Set(child.tree().pids)
    }
    #expect(areListed)
  }
}
