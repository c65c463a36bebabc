import Glibc
import Linux

@testable import Hibernation
@testable import Linux

extension FuzzTarget {
  /// Reads the input as each text of /proc and of cgroups. The kernel writes them, but a worker
  /// chooses names, paths and numbers in them.
  static let procTexts = FuzzTarget(
    read: { bytes in
      readProcess(bytes)
      readMachine(bytes)
      let text = String(decoding: bytes, as: UTF8.self)
      readMappings(bytes)
      readDescriptors(bytes, text)
      readGroups(bytes, text)
    }, seeds: procSeeds)
}

private func readProcess(_ bytes: [UInt8]) {
  if let stat = ProcessStat(parsing: bytes) {
    precondition(stat.name.utf8.count <= 3 * bytes.count)
  }
  _ = ProcessStatus(parsing: bytes)
  _ = WaitingSignals(parsing: bytes)
  _ = ThreadRun(sched: bytes, processor: 0)
  let text = String(decoding: bytes, as: UTF8.self)
  if let call = WaitingCall(text) {
    _ = call.limit(read: { _ in (1, 2) })
    _ = call.current(shownAs: text, isHidden: true)
    _ = (call.again, call.isRestart)
  }
  _ = CallsBeforeStop.calls(in: text)
}

private func readMappings(_ bytes: [UInt8]) {
  for mapping in MemoryMapping.parse(bytes) { _ = (mapping.name, mapping.flags) }
  for line in bytes.split(separator: 10) { _ = MemoryMapping(header: line) }
  _ = Footprint(parsing: bytes)
  var dirty = DirtyMappings()
  dirty.add(smaps: bytes, stackPointers: [0x7ffc_0000_0000])
  _ = dirty.largestFirst
}

private func readMachine(_ bytes: [UInt8]) {
  _ = HostMemory(parsing: bytes)
  _ = MemoryInfo(parsing: bytes)
  _ = MemoryInfo.perCPUPages(parsing: bytes)
  _ = SwapArea.freeInMemory(parsing: bytes)
  _ = PressureStall(parsing: bytes)
  _ = RunnableThreads.count(in: String(decoding: bytes, as: UTF8.self))
}

private func readDescriptors(_ bytes: [UInt8], _ text: String) {
  _ = DueTime(fdinfo: bytes)
  _ = FileLocks.ofProcess(1, in: text)
  _ = AwaitedDescriptors.epoll(text)
  _ = AwaitedDescriptors.poll(bytes)
  _ = AwaitedDescriptors.select(bytes, below: Int32(8 * min(bytes.count, 128)))
  _ = Eligibility.userfaultIsInUse(text)
  _ = Eligibility.ringObstacle(text)
  var connections = UnacceptedConnections(port: 80)
  connections.add { bytes }
  _ = connections.list.map(\.isEmpty)
}

private func readGroups(_ bytes: [UInt8], _ text: String) {
  _ = CgroupRoot.groupPath(parsing: text)
  _ = ForeignFreeze.groups(parsing: text)
  _ = LimitFiles.groupOfFirstVersion(parsing: text)
  _ = WorkerCgroup.killedForMemory(in: bytes)
  for line in text.split(separator: "\n") {
    guard let mount = Mount(parsing: line) else { continue }
    _ = LimitFiles.directory(of: text, in: mount)
  }
}

private func procSeeds() -> [String: [UInt8]] {
  let names = [
    "self/stat", "self/status", "self/smaps_rollup", "self/cgroup", "self/mountinfo",
    "self/syscall", "self/sched", "meminfo", "zoneinfo", "swaps", "pressure/memory", "loadavg",
    "locks",
    "self/net/tcp", "self/net/tcp6",
  ]
  var seeds = inputs(from: writtenSeeds)
  for name in names {
    seeds[name.split(separator: "/").joined(separator: "-")] = Array(
      content("/proc/\(name)").prefix(8192))
  }
  seeds["smaps"] = Array(content("/proc/self/smaps").prefix(6000))
  return seeds
}

private let writtenSeeds = [
  "clockid: 1\nticks: 0\nsettime flags: 01\nit_value: (5, 999999999)\nit_interval: (1, 0)\n",
  "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5  pos:0 ino:1 sdev:9\n",
  "1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n1: -> POSIX ADVISORY READ 3 1:2:3 0 9\n",
  "pos:\t0\nAPI:\taa:1ff:1ff\npending:\t0\ntotal:\t0\n",
  "SqMask:\t0x3\nSqHead:\t4\nSqTail:\t4\nCqHead:\t4\nCqTail:\t4\nUserBufs:\t0\nPollList:\n  op=1\n",
  "17 232 0x3 0x7ffc00001000 0x400 0xffffffff 0x0 0x8 0x7ffc00000f00 0x7f0000001234\n",
  "232 0x3 0x7ffc00001000 0x400 0xffffffff 0x0 0x8 0x7ffc00000f00 0x7f0000001234\n",
  "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\n",
]
