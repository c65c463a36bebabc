import CLinux
import Glibc

/// The threads that can access pages through /proc/PID/mem that the process itself may not write
/// (its constants after relocation, its generated code) or not read (PROT_NONE). The kernel's name
/// for such an access is FOLL_FORCE.
///
/// Other pages can be accessed by every thread that has a descriptor, on each kernel.
public enum ForcedAccess: Hashable, Sendable {
  /// Every thread that has a descriptor.
  case anyThread
  /// Only the thread that traces the process's first thread (CONFIG_PROC_MEM_FORCE_PTRACE, Linux
  /// 6.12; `proc_mem.force_override=ptrace`). All others, even of the same program, get EIO.
  case tracingThread
  /// No thread (`proc_mem.force_override=never`).
  case noThread

  /// What this kernel permits. It is tried once in each process.
  public static let tried: ForcedAccess =
    isSimulated || clinux_writes_read_only_pages() < 0
    ? KernelTrial.asTracer.writes == -EIO ? .noThread : .tracingThread
    : .anyThread

  /// True for tests on kernels without the rule: this process enforces `tracingThread` on itself.
  private static let isSimulated = getenv("DORMOUSE_TEST_PROC_MEM") != nil

  /// Enforces the simulated rule. It is called before each transfer through /proc/PID/mem.
  static func check(
    _ call: String, on pid: Int32, _ range: PageRange, writing: Bool
  ) throws(SystemCallError) {
    guard isSimulated else { return }
    let isForced = try MemoryMapping.headers(of: pid).contains {
      $0.range.intersects(range) && (writing ? !$0.writable : !$0.readable)
    }
    // TracerPid is the ID of the tracing thread.
    if isForced, try ProcessStatus.read(pid).tracer != clinux_thread_id() {
      throw SystemCallError(call, on: "pid \(pid) (simulated force_override=ptrace)", code: EIO)
    }
  }
}

/// What this process may do to a child that it traces. It is tried once.
struct KernelTrial {
  /// 1 if it can write the child's read-only pages through /proc/PID/mem; otherwise a negative
  /// error number. It stays 1 if the process may trace no child, because another check reports
  /// that.
  var writes: Int32 = 1
  /// 1 if the kernel shows the address of a thread's area for restartable sequences; otherwise a
  /// negative error number.
  var showsRseq: Int32 = 1

  static let asTracer: KernelTrial = {
    var trial = KernelTrial()
    return clinux_try_as_tracer(&trial.writes, &trial.showsRseq) == 0 ? trial : KernelTrial()
  }()
}
