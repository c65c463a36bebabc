import Glibc
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("A worker's channels") struct WorkerChannelsTests {
  private func plan(in scratch: Scratch, for account: Account? = nil) -> ChannelPlan {
    ChannelPlan(
      name: "a/b", directory: scratch.path + "/channels",
      publicDirectory: scratch.path + "/public", hasNotifySocket: true, acceptsDescriptors: false,
      account: account)
  }

  private func status(_ path: String) throws -> stat {
    var status = stat()
    try systemCall("stat", path: path) { stat($0, &status) }
    return status
  }

  @Test("A worker's channels are three sockets in a new directory, named after the worker")
  func names() throws {
    let scratch = try Scratch()
    let made = try plan(in: scratch).open()
    let channels = try #require(made.claim())
    let paths = [channels.notify?.path, channels.pressure?.path, channels.talk?.path]
    #expect(paths.compactMap(\.self) == plan(in: scratch).paths.dropLast())
    for path in paths.compactMap(\.self) {
      #expect(try status(path).st_mode & S_IFMT == S_IFSOCK)
    }
    #expect(made.remarks.isEmpty)
    #expect(made.claim() == nil, "they belong to one")
  }

  @Test(
    "A worker's channels belong to its user, in a directory that others may pass but not read",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func owner() throws {
    let scratch = try Scratch()
    chmod(scratch.path, 0o755)
    let account = try Account(user: "nobody", group: nil)
    let made = try plan(in: scratch, for: account).open()
    let channels = try #require(made.claim())
    for path in [channels.notify?.path, channels.pressure?.path, channels.talk?.path] {
      #expect(try status(try #require(path)).st_uid == account.identity.user)
    }
    #expect(try status(scratch.path + "/channels").st_mode & 0o777 == 0o711)
    #expect(made.remarks.isEmpty)
  }

  @Test(
    "Channels that the worker's user can't reach aren't offered, and NOTIFY_SOCKET is moved",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func unreachable() throws {
    let scratch = try Scratch()
    chmod(scratch.path, 0o700)
    let account = try Account(user: "nobody", group: nil)
    let made = try plan(in: scratch, for: account).open()
    let channels = try #require(made.claim())
    #expect(channels.pressure == nil)
    #expect(channels.talk == nil)
    // The public directory of this test can't be reached either.
    #expect(channels.notify?.path.hasPrefix("@") == true)
    #expect(made.remarks.map(\.level) == [.notice])
    #expect(try listDirectory(scratch.path + "/channels") == [])
  }

  @Test func `The channels of the next run aren't removed with those of the last one`() throws {
    let scratch = try Scratch()
    let loop = try EventLoop()
    let files = SocketFiles(try LoopJobs(loop))
    let plan = plan(in: scratch)
    for _ in 0..<50 {
      var outcome: WorkerChannels?
      files.open(plan, within: .seconds(10)) {
        if case .done(.success(let made)) = $0 { outcome = made.claim() }
      }
      try loop.turn { outcome != nil }
      let channels = try #require(outcome)
      let paths = [channels.notify?.path, channels.pressure?.path, channels.talk?.path]
      for path in paths.compactMap(\.self) {
        #expect(access(path, F_OK) == 0)
        files.remove(path)
      }
    }
    files.drain(within: .seconds(60))
    #expect(try listDirectory(scratch.path + "/channels") == [])
  }
}
