import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("The program that listens at a port") struct PortHolderTests {
  private let listener: Descriptor
  private let port: UInt16

  init() throws {
    let socket = try Descriptor.socket(family: AF_INET, type: SOCK_STREAM)
    let bound = withLoopback(0) { bind(socket.raw, $0, $1) }
    try #require(bound == 0)
    (listener, port) = (socket, localPort(of: socket.raw))
  }

  private func holder(_ worker: ProcessIdentity) throws -> PortHolder? {
    try PortHolder.earlier(than: worker, session: worker.pid, cgroup: nil, at: port)
  }

  @Test func `A program that was started before the worker is named, once it listens`() throws {
    let child = try TestChild("sleep", "690")
    #expect(try holder(child.process.identity) == nil, "it doesn't listen yet")
    #expect(listen(listener.raw, 5) == 0)
    #expect(try holder(child.process.identity)?.pid == getpid())
    // The program doesn't listen at another port.
    let other = try PortHolder.earlier(
      than: child.process.identity, session: child.pid, cgroup: nil, at: 1)
    #expect(other == nil)
  }

  @Test func `The worker itself, and a program that is newer than it, may listen`() throws {
    #expect(listen(listener.raw, 5) == 0)
    #expect(try holder(ProcessStat.read(getpid()).identity) == nil)
    #expect(try holder(ProcessStat.read(1).identity) == nil)
  }
}
