/// The status of a process or thread from `/proc/PID/status` (proc_pid_status(5)). In signal masks,
/// signal N is bit N−1.
public struct ProcessStatus: Hashable, Sendable {
  public var state = ProcessStat.State.other(0)
  /// The pid of the process to which a thread belongs.
  public var threadGroup: Int32 = 0
  /// The ID of the tracing thread; 0 if no thread traces it.
  public var tracer: Int32 = 0
  /// The real user ID.
  public var user: UInt32 = 0
  /// The size of its table of descriptors, a power of two from 64 on.
  public var descriptorTableSize: UInt64 = 0
  /// The signals that are pending for this thread. Those in `pendingForProcess` are pending for the
  /// process.
  public var pendingForThread: UInt64 = 0
  public var pendingForProcess: UInt64 = 0
  public var blocked: UInt64 = 0
  public var ignored: UInt64 = 0
  public var caught: UInt64 = 0
  /// The effective capabilities; capability N is bit N.
  public var effectiveCapabilities: UInt64 = 0
  /// False for kernel threads, and for a process that is being killed and has lost its memory
  /// already.
  public var hasMemory = false
  /// Locked memory in bytes; 0 for kernel threads.
  public var lockedBytes: Int64 = 0
  public var swappedBytes: Int64 = 0
  /// The memory in bytes that a device or the kernel has pinned: registered io_uring buffers, RDMA.
  public var pinnedBytes: Int64 = 0
  /// Pages of files in RAM, in bytes.
  public var residentFileBytes: Int64 = 0
  /// The seccomp mode: 0 off, 1 strict, 2 filter.
  public var seccomp: Int32 = 0
  /// Its pids in the nested pid namespaces, beginning with this process's namespace.
  public var namespacePids: [Int32] = []

  /// Reads the status of a process, or of any thread.
  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessStatus {
    do throws(SystemCallError) {
      return ProcessStatus(parsing: try readRecord("/proc/\(pid)/status"))
    } catch { throw error.unlessHidden(pid) }
  }

  /// Fields that the kernel leaves out (older kernels, kernel threads) keep their zeros.
  public init(parsing bytes: [UInt8]) {
    forEachField(bytes) { key, value in
      switch key {
      case "State": state = value.first.map(ProcessStat.State.init(letter:)) ?? state
      case "Tgid": threadGroup = value.number() ?? 0
      case "TracerPid": tracer = value.number() ?? 0
      case "Uid": user = value.words().first?.number() ?? 0
      case "FDSize": descriptorTableSize = value.number() ?? 0
      case "SigPnd": pendingForThread = value.number(radix: 16) ?? 0
      case "ShdPnd": pendingForProcess = value.number(radix: 16) ?? 0
      case "SigBlk": blocked = value.number(radix: 16) ?? 0
      case "SigIgn": ignored = value.number(radix: 16) ?? 0
      case "CapEff": effectiveCapabilities = value.number(radix: 16) ?? 0
      case "SigCgt": caught = value.number(radix: 16) ?? 0
      case "VmSize": hasMemory = true
      case "VmLck": lockedBytes = kilobytes(value) ?? 0
      case "VmPin": pinnedBytes = kilobytes(value) ?? 0
      case "RssFile": residentFileBytes = kilobytes(value) ?? 0
      case "VmSwap": swappedBytes = kilobytes(value) ?? 0
      case "Seccomp": seccomp = value.number() ?? 0
      case "NSpid": namespacePids = value.words().compactMap { $0.number() }
      default: break
      }
    }
  }

  /// True if a signal is pending that a handler catches when the process continues.
  public var hasHandledSignal: Bool {
    (pendingForThread | pendingForProcess) & caught & ~blocked != 0
  }

  /// The signals that are pending because they are blocked. The program reads them by signalfd(2)
  /// or sigwait(3), or leaves them by choice.
  public var blockedPending: UInt64 { (pendingForThread | pendingForProcess) & blocked }

  /// Whether the process has a handler for the signal.
  public func catches(_ signal: Int32) -> Bool { Self.contains(caught, signal) }

  /// Whether a signal mask contains a signal.
  public static func contains(_ mask: UInt64, _ signal: Int32) -> Bool {
    (1...64).contains(signal) && mask & (1 << UInt64(signal - 1)) != 0
  }
}

/// Lists the thread IDs of a process, the first thread first.
public func threads(of pid: Int32) throws(SystemCallError) -> [Int32] {
  try listNumbers("/proc/\(pid)/task")
}
