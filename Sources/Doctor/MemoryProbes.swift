import CLinux
import Linux

extension Probe {
  static let ofMemory = [memoryFile, memoryCalls, pagemap, pageOut, madvise, tracking]

  private static let memoryFile = Probe(
    id: "proc-mem", name: "reading a worker's memory as a file", need: .required,
    lost: "No worker can be hibernated: its protected pages can't be read.",
    enable: "/proc mounted without hidepid for the daemon's user; a kernel that isn't booted with "
      + "proc_mem.force_override=never."
  ) { examination in
    let child = try examination.child.get()
    let memory = try ProcessMemory(pid: child.pid)
    let range = try someRange(of: child.pid)
    // The process waits for input, so the memory doesn't change meanwhile.
    let bytes = try memory.readBytes(at: range.address, count: Int(range.length))
    try memory.writeBytes(bytes, at: range.address)
    let features = KernelFeatures.detect()
    if let obstacle = features.restoreObstacle { throw ProbeFailure(obstacle) }
    return .works(
      "read and wrote \(range.length) bytes of a child through /proc/PID/mem"
        + (features.forcedAccess == .anyThread ? "" : "; only its tracer writes read-only pages"))
  }

  private static let memoryCalls = Probe(
    id: "process-vm", name: "reading a worker's memory by system calls",
    lost: "Memory is read through /proc/PID/mem, which takes about 1.5 times as long.",
    enable: "a kernel with CONFIG_CROSS_MEMORY_ATTACH; in a container, a seccomp profile that "
      + "permits process_vm_readv."
  ) { examination in
    let child = try examination.child.get()
    let range = try someRange(of: child.pid)
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Int(range.length), alignment: 8)
    defer { buffer.deallocate() }
    _ = try [range].readDirectly(from: child.pid, into: buffer)
    return .works("process_vm_readv")
  }

  private static let pagemap = Probe(
    id: "pagemap-scan", name: "finding a worker's pages",
    lost: "Pages are looked up one by one: slower for workers with large, mostly empty mappings.",
    enable: "Linux 6.7 or later (PAGEMAP_SCAN)."
  ) { examination in
    guard KernelFeatures.detect().pagemapScan else {
      return .missing("this kernel has no PAGEMAP_SCAN")
    }
    let child = try examination.child.get()
    let pages = try privatePages(of: child.pid)
    guard !pages.isEmpty else {
      return .missing("/proc/PID/pagemap shows no pages of a child to us")
    }
    return .works("PAGEMAP_SCAN found \(pages.bytes / 1024) KB of a child")
  }

  private static let pageOut = Probe(
    id: "process-madvise-pageout", name: "dropping program pages",
    lost: "`hibernate.drop_file_pages` has no effect: the pages of a worker's program stay until "
      + "the kernel drops them.",
    enable:
      "Linux 5.10 or later, and CAP_SYS_NICE. Without CAP_FOWNER it works for files that belong "
      + "to the daemon's user or are writable by it."
  ) { examination in
    let child = try examination.child.get()
    guard let code = try MemoryMapping.all(of: child.pid).first(where: { $0.hasFile && !$0.shared })
    else { throw ProbeFailure("a child maps no file") }
    let page = PageRange(address: code.start, length: pageSize)
    try page.pageOut(of: child.pid, through: child.process.pidfd)
    return .works("process_madvise with MADV_PAGEOUT on a page of a child's program")
  }

  private static let madvise = Probe(
    id: "process-madvise-self", name: "freeing pages in one call",
    lost: "Pages are freed by one call per range: hibernating takes about 10 ms longer.",
    enable: "Linux 6.15 or later (process_madvise with PIDFD_SELF and MADV_DONTNEED)."
  ) { _ in
    let result = clinux_try_process_madvise_self()
    guard result == 1 else {
      throw SystemCallError("process_madvise", on: "with PIDFD_SELF", code: -result)
    }
    return .works("process_madvise(PIDFD_SELF, MADV_DONTNEED)")
  }

  private static let tracking = Probe(
    id: "write-tracking", name: "tracking the pages that a worker writes",
    lost:
      "A worker's next hibernation compares its pages with its last image, which takes twice as "
      + "long; it writes as little.",
    enable:
      "Linux 6.7 or later with CONFIG_USERFAULTFD and CONFIG_PTE_MARKER_UFFD_WP; in a container, a "
      + "seccomp profile that permits userfaultfd."
  ) { _ in
    let result = clinux_try_tracking()
    guard result == 1 else {
      throw SystemCallError("userfaultfd", on: "with asynchronous write protection", code: -result)
    }
    return .works("userfaultfd with asynchronous write protection, and PAGEMAP_SCAN")
  }

  /// Returns a range of bytes that the process itself has written.
  private static func someRange(of pid: Int32) throws -> PageRange {
    PageRange(address: try privatePage(of: pid), length: 64)
  }

  /// Returns the address of a page that the process has written.
  static func privatePage(of pid: Int32) throws -> UInt64 {
    guard let page = try privatePages(of: pid).first else {
      throw ProbeFailure("/proc/\(pid)/pagemap shows no pages of a child to us")
    }
    return page.address
  }

  /// Returns the pages of the process that it shares with no other one and has written.
  private static func privatePages(of pid: Int32) throws -> [PageRange] {
    let map = try PageMap(pid: pid)
    return try MemoryMapping.all(of: pid)
      .filter { $0.writable && !$0.shared && $0.anonymous > 0 }
      .flatMap { try map.privatePages(from: $0.start, to: $0.end) }
  }
}
