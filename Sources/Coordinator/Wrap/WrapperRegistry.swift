import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy

/// The daemon's side: wrappers that have registered, and what they last said of their workers. Each
/// is here for as long as its connection.
struct WrapperRegistry {
  struct Entry {
    var report: WrapperReport
    var at: Instant
  }

  private var entries: [ObjectIdentifier: Entry] = [:]
  /// Those who lead the worker of that name in the engine: the first to come, if several say so.
  private var leaders: [WorkerID: ControlServer.Client] = [:]

  /// Why not; nil: it is taken.
  mutating func take(
    _ report: WrapperReport?, from client: AnyObject, at now: Instant
  ) -> String? {
    guard let report else { return "`register` needs a wrapper" }
    if let problem = WorkerName.problem(with: report.worker.name) { return problem }
    entries[ObjectIdentifier(client)] = Entry(report: report, at: now)
    return nil
  }

  /// The worker that it has led; nil: none.
  mutating func forget(_ client: ControlServer.Client) -> WorkerID? {
    entries[ObjectIdentifier(client)] = nil
    guard let id = leaders.first(where: { $0.value === client })?.key else { return nil }
    leaders[id] = nil
    return id
  }

  /// False: somebody else does.
  mutating func lead(_ worker: WorkerID, _ client: ControlServer.Client) -> Bool {
    if let leader = leaders[worker] { return leader === client }
    leaders[worker] = client
    return true
  }

  func leads(_ worker: WorkerID) -> Bool { leaders[worker] != nil }

  func leader(of worker: WorkerID) -> ControlServer.Client? { leaders[worker] }

  func entry(from client: AnyObject) -> Entry? { entries[ObjectIdentifier(client)] }

  func entry(of worker: String?) -> Entry? {
    if let worker, let leader = leaders[WorkerID(worker)], let entry = entry(from: leader) {
      return entry
    }
    return entries.values.first { $0.report.worker.name == worker }
  }

  /// By name, their clocks set forward to now.
  func reports(at now: Instant) -> [WorkerReport] {
    entries.values.map { $0.current(at: now) }.sorted { $0.name < $1.name }
  }
}

extension WrapperRegistry.Entry {
  func current(at now: Instant) -> WorkerReport {
    var worker = report.worker
    let elapsed = (now - at).seconds
    worker.secondsInState += elapsed
    worker.secondsSinceUse += elapsed
    worker.wrapper = report.pid
    return worker
  }
}

extension Daemon {
  func isWrapped(_ worker: String?) -> Bool {
    guard let worker, workers[WorkerID(worker)] == nil else { return false }
    return wrappers.entry(of: worker) != nil
  }

  /// Passes a request for a wrapped worker on to its wrapper, and the answer back.
  func relay(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    let name = request.worker ?? ""
    func refuse(_ why: String) {
      respond(
        ControlResponse(
          id: request.id, result: .failed, text: "\(name) can't be reached: its wrapper \(why)"))
    }
    guard let entry = wrappers.entry(of: request.worker) else { return refuse("has ended") }
    do {
      let socket = try UnixSocket.connected(to: entry.report.socket, .stream)
      let line = try WireCodec.line(for: request)
      guard send(socket.raw, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) == line.count
      else { return refuse("doesn't listen") }
      var framer = LineFramer()
      var token: EventLoop.Token?
      token = try loop.watch(socket, .readable) { [unowned self] _ in
        let bytes = (try? socket.read(upTo: 65536)) ?? []
        framer.append(bytes)
        let answer = try? framer.next()
        if !bytes.isEmpty, answer == nil { return }
        if let token { loop.unwatch(socket, token) }
        let response = answer.flatMap { try? WireCodec.decode(ControlResponse.self, from: $0) }
        guard let response else { return refuse("has ended") }
        respond(response)
      }
    } catch { refuse("isn't there: \(error)") }
  }
}
