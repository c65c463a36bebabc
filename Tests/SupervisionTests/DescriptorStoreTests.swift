import Glibc
import Linux
import Synchronization
import TestSupport
import Testing

@testable import Supervision

@Suite("Stored descriptors") struct DescriptorStoreTests {
  private func pipeEnds() throws -> (read: Descriptor, write: Descriptor) {
    let ends = try Descriptor.pipe()
    return (again(ends.reading), ends.writing)
  }

  private func again(_ descriptor: Descriptor) -> Descriptor {
    Descriptor(foreign: dup(descriptor.raw))
  }

  @Test func `A descriptor store takes as many as there is room for, and none twice`() throws {
    let store = DescriptorStore { _ in }
    let (one, two) = (try pipeEnds(), try pipeEnds())
    let all = [one.read, again(one.read), two.read, again(two.read)]
    #expect(store.add(all, name: "a", isPolled: true, limit: 2) == .init())
    #expect(store.entries.map(\.name) == ["a", "a"])
    #expect(store.add([again(one.write)], name: "b", isPolled: true, limit: 2).noRoom == 1)
    #expect(store.remove(name: "b") == 0)
    #expect(store.remove(name: "a") == 2)
    #expect(store.add([again(one.write)], name: "b", isPolled: true, limit: 2) == .init())
    #expect(store.add([again(two.write)], name: "c", isPolled: true, limit: 2) == .init())
    #expect(store.keep(atMost: 1) == 1)
    #expect(store.entries.map(\.name) == ["b"])
  }

  @Test(
    "Files of file systems aren't stored, because their close may wait, in each child of the daemon"
  )
  func unsafe() throws {
    let scratch = try Scratch()
    let store = DescriptorStore { _ in }
    let file = Descriptor(foreign: open("\(scratch.path)/file", O_RDWR | O_CREAT, 0o600))
    let directory = Descriptor(foreign: open("/", O_RDONLY))
    let refused = store.add([file, directory], name: "a", isPolled: true, limit: 9)
    // A temporary directory may be in memory.
    #expect(refused.unsafe >= 1 && refused.noRoom == 0)
    #expect(!DescriptorStore.isSafe(directory))
    let (event, pipe) = (try EventCounter(), try pipeEnds())
    let safe = [
      Descriptor(foreign: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)),
      event.descriptor, pipe.read,
    ]
    #expect(safe.allSatisfy { DescriptorStore.isSafe($0) })
    #expect(store.add(safe, name: "b", isPolled: true, limit: 9) == .init())
  }

  @Test("A stored descriptor that is hung up is reported, unless it isn't to be polled")
  func hungUp() throws {
    let heard = Mutex<[UInt64]>([])
    let store = DescriptorStore { number in heard.withLock { $0.append(number) } }
    var writers: [Descriptor] = []
    for (name, isPolled) in [("kept", false), ("gone", true), ("open", true)] {
      let ends = try pipeEnds()
      #expect(store.add([ends.read], name: name, isPolled: isPolled, limit: 9) == .init())
      writers.append(ends.write)
    }
    // The writing ends of the first two pipes are closed.
    writers.removeFirst(2)
    #expect(try eventually { heard.withLock { !$0.isEmpty } })
    let numbers = heard.withLock { $0 }
    #expect(numbers.compactMap { store.didHangUp($0) } == ["gone"])
    #expect(store.entries.map(\.name) == ["kept", "open"])
  }

  @Test func `A descriptor that is removed during a run isn't kept open by the daemon`() throws {
    let scratch = try Scratch()
    let store = DescriptorStore { _ in }
    func launch() throws -> (WorkerProcess, reading: Descriptor) {
      let ends = try pipeEnds()
      #expect(store.add([ends.write], name: "a", isPolled: false, limit: 1) == .init())
      var plan = LaunchPlan(
        name: "w", command: ["sleep", "60"], directory: "/", environment: ["PATH": "/usr/bin:/bin"],
        logPath: "\(scratch.path)/log")
      plan.stored = store.entries
      return (try WorkerProcess.launch(plan), ends.read)
    }
    let (worker, reading) = try launch()
    defer { _ = try? worker.reap() }
    store.remove(name: "a")
    // With the worker's own copy the last one is closed.
    try worker.killAll()
    #expect(try pollDescriptor(reading.raw, for: POLLIN, until: Deadline(in: .seconds(60))))
    #expect(try reading.read(upTo: 1).isEmpty)
    #expect(worker.plan.stored.isEmpty)
  }

  @Test(
    "Datagrams say which descriptors are stored and removed, and under which name",
    arguments: [
      ("FDSTORE=1", "stored true"), ("FDSTORE=1\nFDNAME=web 1\nFDPOLL=0", "web 1 false"),
      ("FDNAME=a:b\nFDSTORE=1", "stored true"), ("FDNAME=\nFDSTORE=1", "stored true"),
      ("FDSTOREREMOVE=1\nFDNAME=x", "remove x"), ("FDSTOREREMOVE=1", "nothing"),
      ("READY=1", "nothing"), ("FDSTORE=2", "nothing"),
    ])
  func requests(datagram: String, meaning: String) throws {
    let passed = [try pipeEnds().read]
    let said: String =
      switch StoreRequest(Array(datagram.utf8), passed: passed) {
      case .store(_, let name, let isPolled): "\(name) \(isPolled)"
      case .remove(let name): "remove \(name)"
      case nil: "nothing"
      }
    #expect(said == meaning)
  }

  @Test("A notification socket receives all 253 descriptors of a message, if it takes descriptors")
  func message() throws {
    let scratch = try Scratch()
    let notify = try NotifySocket(path: "\(scratch.path)/notify", acceptsDescriptors: true)
    let script = """
      import array, os, socket, sys
      s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      s.connect(sys.argv[1])
      fds = [os.memfd_create(str(n)) for n in range(253)]
      data = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
      s.sendmsg([b'FDSTORE=1\\nFDNAME=many'], data)
      """
    func send(to path: String) throws -> WorkerExit? {
      try TestWorker("python3", "-c", script, path).waitForExit()
    }
    #expect(try send(to: notify.path) == .exited(0))
    #expect(try notify.receive { _ in true }.isEmpty)
    guard case .store(let descriptors, "many", true)? = notify.drainStoreRequests().first else {
      throw TestFailure("nothing to store")
    }
    #expect(descriptors.count == 253)
    #expect(notify.drainStoreRequests().isEmpty)
    let other = try NotifySocket(path: "\(scratch.path)/other")
    _ = try send(to: other.path)
    _ = try other.receive { _ in true }
    #expect(other.drainStoreRequests().isEmpty)
  }
}
