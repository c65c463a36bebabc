import CLinux
import Glibc
import Linux

/// The steps that are added to a hibernation after which the worker will be restored lazily.
extension Operation {
  /// Returns the learned working set and the pages that the kernel needs when a thread ends: it
  /// clears the thread's number there and walks its list of robust mutexes, and doesn't wait for
  /// missing pages while it does.
  func workingSet(of seized: SeizedProcess) -> WorkingSet {
    var wanted =
      hibernator.workingSets[target.name]?[seized.stat.identity] ?? WorkingSet()
    for thread in seized.session.threads {
      for page in thread.registers.threadBlock { wanted.insert(page) }
      for page in thread.registers.futexPages { wanted.insert(page) }
      // The thread's timeout is corrected before it runs, so its pages must be present.
      for page in thread.registers.timePages { wanted.insert(page) }
    }
    return wanted
  }

  /// Opens a userfaultfd in the process, unless it has one made by Dormouse. If that isn't
  /// possible, the resume is eager.
  ///
  /// - Returns: the reason if it isn't possible.
  func prepareForFaults(
    _ seized: SeizedProcess, plan: PagePlan, injector: Injector
  ) throws -> String? {
    guard restore.isLazy, !plan.backgroundMappings.isEmpty, freezer != nil else { return nil }
    let identity = seized.stat.identity
    do {
      if let obstacle = try FaultHandle.obstacle(of: identity.pid) { return obstacle }
      // The descriptors are searched for each time: the program may have closed them, or executed
      // another program (exec).
      let handle =
        try FaultHandle.find(in: identity)
        ?? .inject(injector, into: identity, features: hibernator.features)
      hibernator.handles[target.name, default: [:]][identity] = handle
      return nil
    } catch TraceError.injected(let call, _, let code) where code == EPERM {
      return "\(call) isn't permitted in process \(identity.pid) "
        + "(vm.unprivileged_userfaultfd, /dev/userfaultfd)"
    } catch TraceError.injected(let call, let pid, let code) {
      return "\(call) inside process \(pid): \(String(cString: strerror(code)))"
    } catch let error as SystemCallError {
      return error.description
    } catch let error as FaultJournal.Damaged {
      return error.description
    } catch let failure as UserfaultService.Failure { return failure.description }
  }
}
