import CLinux
import Glibc
import Linux

/// What a hibernation does besides where the worker is to be restored lazily.
extension Operation {
  /// What has been learned, and what each thread's end needs: the kernel clears its number there and
  /// looks through its robust mutexes, and doesn't wait for missing pages while it does.
  func workingSet(of captive: Captive) -> PagePlan.WorkingSet {
    var wanted =
      hibernator.workingSets[target.name]?[captive.stat.identity] ?? PagePlan.WorkingSet()
    for thread in captive.session.threads {
      for page in thread.registers.threadBlock { wanted.pages.insert(page) }
      // The time that it waits for is corrected before it runs.
      for page in thread.registers.timePages { wanted.pages.insert(page) }
    }
    return wanted
  }

  /// Opens a userfaultfd in the process, unless it has one of ours. Whatever speaks against it only
  /// makes the resume an eager one.
  func prepareForFaults(
    _ captive: Captive, plan: PagePlan, injector: Injector
  ) throws -> String? {
    guard restore.isLazy, !plan.backgroundMappings.isEmpty, freezer != nil else { return nil }
    let identity = captive.stat.identity
    do {
      // Looked for each time: the program may have closed them, or become another (exec).
      let handle = try FaultHandle.find(in: identity) ?? .inject(injector, into: identity)
      hibernator.handles[target.name, default: [:]][identity] = handle
      return nil
    } catch TraceError.injected(let call, _, let code) where code == EPERM {
      return "\(call) isn't permitted in process \(identity.pid) "
        + "(vm.unprivileged_userfaultfd, /dev/userfaultfd)"
    } catch TraceError.injected(let call, let pid, let code) {
      return "\(call) inside process \(pid): \(String(cString: strerror(code)))"
    } catch let error as SystemCallError { return error.description }
  }
}
