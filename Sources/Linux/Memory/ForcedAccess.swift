import CLinux
import Glibc

/// Which threads reach pages through /proc/PID/mem that the process itself may not write (its constants after
/// relocation, its generated code) or not read (PROT_NONE). The kernel calls it FOLL_FORCE.
///
/// Other pages are reached by every thread that has a descriptor, on each kernel.
public enum ForcedAccess: Hashable, Sendable {
  case anyThread
  /// The thread that traces the process's first thread, and no other thread of its program
  /// (CONFIG_PROC_MEM_FORCE_PTRACE, Linux 6.12; `proc_mem.force_override=ptrace`). Others get EIO.
  case tracingThread
  /// No thread (`proc_mem.force_override=never`).
  case noThread

  /// What this kernel permits, tried once in each process.
  public static let tried: ForcedAccess =
    isSimulated || clinux_writes_read_only_pages() < 0
    ? KernelTrial.asTracer.writes == -EIO ? .noThread : .tracingThread
    : .anyThread

  /// For tests on kernels without the rule: this process enforces `tracingThread` on itself.
  private static let isSimulated = getenv("DORMOUSE_TEST_PROC_MEM") != nil

  /// Call it before each transfer through /proc/PID/mem.
  static func check(
    _ call: String, _ pid: Int32, _ range: PageRange, writing: Bool
  ) throws(SystemCallError) {
    guard isSimulated else { return }
    let lines = try readFile("/proc/\(pid)/maps").split(separator: UInt8(ascii: "\n"))
    let isForced = lines.compactMap(MemoryMapping.init(header:)).contains {
      $0.range.intersects(range) && (writing ? !$0.writable : !$0.readable)
    }
    // TracerPid is the number of the tracing thread.
    if isForced, try ProcessStatus.read(pid).tracer != clinux_thread_id() {
      throw SystemCallError(call, on: "pid \(pid) (simulated force_override=ptrace)", code: EIO)
    }
  }
}

/// What this process may do to a child that it traces, tried once.
struct KernelTrial {
  /// 1: it writes the child's read-only pages through /proc/PID/mem; else a negative error number. A process that may
  /// trace no child keeps 1: another check reports that.
  var writes: Int32 = 1
  /// 1: the kernel shows where a thread's area for restartable sequences is; else a negative error number.
  var showsRseq: Int32 = 1

  static let asTracer: KernelTrial = {
    var trial = KernelTrial()
    return clinux_try_as_tracer(&trial.writes, &trial.showsRseq) == 0 ? trial : KernelTrial()
  }()
}
