import Control
import Lifecycle
import Testing

@testable import Daemon

@Suite("Wrappers that have registered with a daemon") struct RegisteredWrappersTests {
  private let world = WrapperWorld()
  private var wrappers: RegisteredWrappers { world.wrappers }
  private let id = WorkerID("clangd")

  private func asleep(_ state: String, megabytes: Int64 = 2, image: Int64 = 9) -> WorkerReport {
    var worker = world.report(state, megabytes: megabytes).worker
    worker.imageSize = image << 20
    return worker
  }

  @Test(arguments: ["foreground", "background", "suspended", "hibernated", "not known here"])
  func `A wrapper that registers puts its worker on the daemon's ladder`(state: String) throws {
    #expect(world.register(world.report(state)) == nil)
    #expect(world.state("clangd") == WorkerState(rawValue: state) ?? .background)
    #expect(world.driver.state.footprint(of: id) == .megabytes(90))
    let profile = try #require(world.driver.state.profile(of: id))
    #expect(profile.leader == "its wrapper, pid 77" && !profile.mayBeTerminated)
    #expect(wrappers.leads(id) && wrappers.isWrapped("clangd"))
    #expect(wrappers.report(of: "clangd")?.wrapper == 77)
    #expect(world.asked.isEmpty)
  }

  @Test func `Only a further report changes the state of a wrapped worker`() {
    world.register(world.report("foreground"))
    for state in ["background", "suspended", "foreground", "hibernated", "background"] {
      world.register(world.report(state, megabytes: 50))
      #expect(world.state("clangd")?.rawValue == state)
    }
    #expect(world.driver.state.footprint(of: id) == .megabytes(50))
    world.pass(.seconds(3600))
    #expect(world.state("clangd") == .background && world.asked.isEmpty)
  }

  @Test func `The permission to terminate a wrapped worker follows the latest report`() {
    for permission in [true, false] {
      world.register(WrapperWorld.report("clangd", mayBeTerminated: permission))
      #expect(world.driver.state.profile(of: id)?.mayBeTerminated == permission)
    }
  }

  @Test func `A hibernation that the daemon's ladder requested has the ladder's reason`() {
    var asked = world.report("hibernated")
    asked.worker.reason = CodedText(.requested(.hibernate))
    world.register(world.report("suspended"))
    world.press(.critical)
    #expect(world.asked.first == "hibernate clangd")
    world.answer(.done)
    world.answer(.done, "", asked.worker)
    world.register(asked)
    #expect(world.state("clangd") == .hibernated)
    #expect(wrappers.report(of: "clangd")?.reason.code == "pressure")
    // After the worker has run, a request is one of the operator.
    world.register(world.report("background"))
    world.register(asked)
    #expect(wrappers.report(of: "clangd")?.reason == asked.worker.reason)
    #expect(world.driver.state.snapshot(of: id)?.cause.sentence == asked.worker.reason.text)
  }

  @Test func `A negative footprint of a wrapped worker counts as none`() {
    world.register(world.report("background", megabytes: -3))
    #expect(world.driver.state.footprint(of: id) == .zero)
  }

  @Test func `A report without a wrapper, or with an invalid worker name, changes nothing`() {
    #expect(wrappers.register(nil, from: ClientID(number: 1)) != nil)
    #expect(world.register(WrapperWorld.report("../x y")) != nil)
    #expect(wrappers.reports().isEmpty && world.driver.state.state(of: id) == nil)
    #expect(!wrappers.isWrapped(nil))
  }

  @Test func `When a wrapper's connection ends, its worker is released and unknown`() {
    world.register(WrapperWorld.report("clangd", "suspended", mayBeTerminated: true))
    world.leave()
    #expect(world.state("clangd") == nil && !wrappers.leads(id) && !wrappers.isWrapped("clangd"))
    #expect(wrappers.reports().isEmpty && world.killed.isEmpty && world.asked.isEmpty)
    // This client was no wrapper.
    world.leave(9)
  }

  @Test func `A wrapper under the name of the daemon's own worker is only shown`() {
    world.declare("clangd")
    #expect(world.register(world.report("suspended")) == nil)
    #expect(world.state("clangd") == .terminated)
    #expect(!wrappers.leads(id) && !wrappers.isWrapped("clangd"))
    #expect(wrappers.reports().map(\.name) == ["clangd"])
    world.leave()
    #expect(world.state("clangd") == .terminated)
  }

  @Test func `Of two wrappers under one name the second is registered after the first`() {
    world.register(world.report("suspended"), 1)
    world.register(WrapperWorld.report("clangd", "foreground", pid: 88), 2)
    #expect(world.state("clangd") == .suspended)
    #expect(wrappers.report(of: "clangd")?.wrapper == 77)
    world.leave(2)
    #expect(world.state("clangd") == .suspended)
    world.register(WrapperWorld.report("clangd", "foreground", pid: 88), 3)
    world.leave(1)
    #expect(world.state("clangd") == nil && wrappers.report(of: "clangd")?.wrapper == 88)
    world.register(WrapperWorld.report("clangd", "foreground", pid: 88), 3)
    #expect(world.state("clangd") == .foreground)
  }

  @Test func `A wrapper's worker is released when the configuration declares one of its name`() {
    world.register(world.report("suspended"))
    wrappers.giveUp(id)
    #expect(world.state("clangd") == nil)
    world.declare("clangd")
    world.register(world.report("foreground"))
    #expect(world.state("clangd") == .terminated && !wrappers.isWrapped("clangd"))
    wrappers.giveUp(WorkerID("another"))
  }

  private func pressHibernating() {
    world.register(world.report("suspended"))
    world.press(.warning)
    #expect(world.asked == ["hibernate clangd"] && world.state("clangd") == .hibernating)
    #expect(world.asks.first?.socket == "/run/clangd.sock")
    #expect(world.asks.first?.timeout == RegisteredWrappers.timeout)
  }

  @Test func `Under pressure a wrapper hibernates its sleeping worker, and reports its state`() {
    pressHibernating()
    world.answer(.done)
    #expect(world.asked.last == "status clangd")
    world.answer(.done, "", asleep("hibernated"))
    #expect(world.state("clangd") == .hibernated)
    #expect(world.driver.state.footprint(of: id) == .megabytes(2))
  }

  @Test func `A worker that was woken before its wrapper answered counts as running`() {
    pressHibernating()
    world.answer(.done)
    world.register(world.report("foreground"))
    #expect(world.state("clangd") == .hibernating)
    world.answer(.done, "", asleep("foreground", megabytes: 90))
    #expect(world.state("clangd") == .foreground)
  }

  @Test func `A wrapper that has hibernated its worker without a report has succeeded`() {
    pressHibernating()
    world.answer(.done)
    world.answer(.failed, "clangd can't be reached")
    #expect(world.state("clangd") == .hibernated)
  }

  @Test func `A wrapper that refuses to hibernate leaves its worker suspended, with its reason`() {
    pressHibernating()
    world.answer(.refused, "it has a file lock")
    #expect(world.state("clangd") == .suspended)
    let obstacles = world.driver.state.explanation(of: id)
    #expect("\(String(describing: obstacles))".contains("it has a file lock"))
  }

  @Test(arguments: [false, true])
  func `Without a wrapper's answer the engine continues; a late success counts`(isDone: Bool) {
    pressHibernating()
    world.pass(.seconds(50))
    #expect(world.state("clangd") == .suspended)
    world.answer(isDone ? .done : .failed)
    if isDone { world.answer(.done, "", asleep("hibernated")) }
    #expect(world.state("clangd") == (isDone ? .hibernated : .suspended))
  }

  @Test func `A connection that ends during a request ends the worker for the daemon`() {
    pressHibernating()
    world.leave()
    #expect(world.state("clangd") == nil)
    world.answer(.failed, "clangd can't be reached: its wrapper has ended")
    #expect(world.state("clangd") == nil && world.asks.isEmpty)
  }

  @Test func `An answer of an earlier wrapper doesn't affect a later wrapper of the same name`() {
    pressHibernating()
    world.driver.send(.pressureSet(.normal, for: .zero))
    world.leave()
    world.register(WrapperWorld.report("clangd", "foreground", pid: 88), 2)
    world.answer(.done)
    #expect(world.asks.isEmpty && world.state("clangd") == .foreground)
  }

  @Test func `Wrappers are asked one after the other, the biggest worker's first`() {
    for (number, size) in [20, 90, 50].enumerated() {
      world.register(
        WrapperWorld.report("w\(size)", "suspended", megabytes: Int64(size)), UInt64(number))
    }
    world.press(.warning)
    for size in [90, 50, 20] {
      #expect(world.asked.last == "hibernate w\(size)")
      world.answer(.done)
      world.answer(.done, "", WrapperWorld.report("w\(size)", "hibernated", megabytes: 1).worker)
      world.register(
        WrapperWorld.report("w\(size)", "hibernated", megabytes: 1),
        UInt64([20, 90, 50].firstIndex(of: size) ?? 9))
      world.pass(.seconds(3))
    }
    #expect(world.asked.filter { $0.hasPrefix("hibernate") }.count == 3)
  }

  @Test func `A wrapped worker isn't hibernated until its wrapper reports that it sleeps`() {
    world.register(world.report("background"))
    world.press(.warning)
    world.pass(.seconds(60))
    #expect(world.asked.isEmpty)
    world.register(world.report("suspended"))
    world.pass(.seconds(5))
    #expect(world.asked == ["hibernate clangd"])
  }

  @Test func `A request for a worker whose wrapper has closed fails at once, with its number`() {
    var answers: [ControlResponse] = []
    wrappers.relay(
      ControlRequest(id: 7, verb: .wake, worker: "clangd"), timeout: .seconds(600)
    ) { answers.append($0) }
    #expect(answers.map(\.result) == [.failed] && answers.first?.id == 7)
    #expect(world.asks.isEmpty)
  }

  @Test(
    "An inspection of a wrapped worker asks its wrapper and reports the answer to the engine",
    arguments: [
      ("hibernated", WorkerState.hibernated), ("suspended", .suspended), ("resuming", .hibernating),
      ("dreaming", .hibernating),
    ])
  func inspects(reported: String, state: WorkerState) {
    pressHibernating()
    #expect(wrappers.execute(.inspect(id)))
    #expect(world.asked.last == "status clangd")
    world.asks.last?.respond(
      ControlResponse(id: 1, result: .done, text: "", workers: [asleep(reported)]))
    #expect(world.state("clangd") == state)
  }
}
