import Glibc
import Linux

func protected(_ arguments: ArraySlice<String>) throws {
  guard let pid = arguments.first.flatMap(Int32.init),
    let range = try MemoryMapping.all(of: pid).first(where: {
      $0.readable && !$0.writable && !$0.shared && $0.anonymous > 0
    })?.range
  else { throw Usage() }
  let memory = try ProcessMemory(pid: pid)
  let byte = try memory.readBytes(at: range.address, count: 1)
  let attempt: @Sendable () -> String = {
    do throws(SystemCallError) {
      try memory.writeBytes(byte, at: range.address)
      return "written"
    } catch { return error.code == EIO ? "refused" : "\(error)" }
  }
  let identity = try ProcessIdentity.current(of: pid)
  let results = [attempt(), try BriefTracer.perform(tracing: [identity], attempt), attempt()]
  report("\(ForcedAccess.tried): \(results), traced by \(try ProcessStatus.read(pid).tracer)")
}
