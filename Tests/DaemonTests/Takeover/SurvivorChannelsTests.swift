import Glibc
import Lifecycle
import Linux
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("The channels of a worker that an earlier daemon has started") struct SurvivorChannelsTests {
  private let world: AdapterWorld
  private let directory: String

  init() throws {
    world = try AdapterWorld()
    directory = world.scratch.path + "/channels"
  }

  private func open(
    notify: String? = nil, pressure: String? = nil, worker: String? = nil
  ) throws -> WorkerChannels {
    let record = try world.record {
      $0.notifySocket = notify
      $0.pressureWatch = pressure
      $0.workerSocket = worker
    }
    return SurvivorChannels(record: record, acceptsDescriptors: false, log: world.log).open()
  }

  @Test func `A worker that had no channels gets none`() throws {
    let channels = try open()
    #expect(channels.notify == nil && channels.pressure == nil && channels.talk == nil)
    #expect(world.logged == "")
  }

  @Test("The sockets have the names that the worker knows, also where their directory was removed")
  func reopened() throws {
    let (notify, worker) = ("\(directory)/web.notify", "\(directory)/web.worker")
    let channels = try open(notify: notify, pressure: "\(directory)/web.pressure", worker: worker)
    #expect(channels.notify != nil && channels.pressure != nil && channels.talk != nil)
    try UnixSocket.connected(to: notify, .datagram).writeAll("READY=1")
    _ = try WorkerSocketPeer(worker)
    var status = stat()
    #expect(stat(directory, &status) == 0 && status.st_mode & 0o077 == 0)
  }

  @Test func `An abstract name has no directory`() throws {
    let name = "@dormouse-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    #expect(try open(notify: name).notify != nil)
    #expect(world.logged == "")
  }

  @Test func `A channel that can't be opened again is logged, and the others are opened`() throws {
    try world.scratch.write("file", "")
    let channels = try open(
      notify: world.scratch.path + "/file/web.notify", worker: "\(directory)/web.worker")
    #expect(channels.notify == nil && channels.talk != nil)
    #expect(world.logged.contains("web: adopted without its channels to the daemon: "))
  }
}
