import Glibc
import Linux
import TestSupport
import Testing

@testable import Daemon

@Suite("A worker's channels") struct WorkerChannelsTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func plan(for account: Account? = nil) -> ChannelPlan {
    ChannelPlan(
      name: "a/b", directory: scratch.path + "/channels",
      publicDirectory: scratch.path + "/public", hasNotifySocket: true, acceptsDescriptors: false,
      account: account)
  }

  private func paths(of channels: WorkerChannels) -> [String] {
    [channels.notify?.path, channels.pressure?.path, channels.talk?.path].compactMap(\.self)
  }

  private func status(_ path: String) throws -> stat {
    var status = stat()
    try systemCall("stat", path: path) { stat($0, &status) }
    return status
  }

  @Test func `A worker's channels are three sockets in a directory, with its name`() throws {
    let made = try plan().open()
    let channels = try #require(made.claim())
    #expect(paths(of: channels) == plan().paths.dropLast())
    for path in paths(of: channels) {
      #expect(try status(path).st_mode & S_IFMT == S_IFSOCK)
    }
    #expect(made.remarks.isEmpty)
    #expect(made.claim() == nil, "they belong to one")
  }

  @Test(
    "A worker's channels belong to its user, in a directory that others may pass but not read",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func owner() throws {
    chmod(scratch.path, 0o755)
    let account = try Account(user: "nobody", group: nil)
    let made = try plan(for: account).open()
    let channels = try #require(made.claim())
    #expect(paths(of: channels).count == 3)
    for path in paths(of: channels) {
      #expect(try status(path).st_uid == account.identity.user)
    }
    #expect(try status(scratch.path + "/channels").st_mode & 0o777 == 0o711)
    #expect(made.remarks.isEmpty)
  }

  @Test(
    "Channels that the worker's user can't reach aren't offered, and NOTIFY_SOCKET is moved",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func unreachable() throws {
    chmod(scratch.path, 0o700)
    let made = try plan(for: Account(user: "nobody", group: nil)).open()
    let channels = try #require(made.claim())
    #expect(channels.pressure == nil)
    #expect(channels.talk == nil)
    // The public directory of this test can't be reached either.
    #expect(channels.notify?.path.hasPrefix("@") == true)
    #expect(made.remarks.map(\.level) == [.notice])
    #expect(try listDirectory(scratch.path + "/channels") == [])
  }

  @Test func `The channels of the next run aren't removed with those of the last one`() throws {
    let loop = try EventLoop()
    let files = SocketFiles(try LoopJobs(loop))
    let plan = plan()
    for _ in 0..<50 {
      var outcome: WorkerChannels?
      files.open(plan, within: .seconds(10)) {
        if case .done(.success(let made)) = $0 { outcome = made.claim() }
      }
      try loop.turn { outcome != nil }
      let channels = try #require(outcome)
      for path in paths(of: channels) {
        #expect(access(path, F_OK) == 0)
        files.remove(path)
      }
    }
    files.drain(within: .seconds(60))
    #expect(try listDirectory(scratch.path + "/channels") == [])
  }

  @Test func `Removals of channels that have ended are forgotten`() throws {
    let loop = try EventLoop()
    let files = SocketFiles(try LoopJobs(loop))
    for number in 0..<3 * SocketFiles.maxRemovals {
      files.remove("\(scratch.path)/\(number).notify")
      files.drain(within: .seconds(60))
      #expect(files.removals.count <= SocketFiles.maxRemovals)
    }
  }
}
