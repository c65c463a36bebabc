import Lifecycle
import Policy
import Testing

@Suite("The reason for a state") struct ReasonTests {
  @Test(arguments: [
    (Cause.graceOver(.seconds(30), isIdle: true), "idle in the background for 30 s"),
    (.graceOver(.seconds(30), isIdle: false), "in the background for 30 s"),
    (.graceOver(), "in the background long enough"),
    (.timer("its own timer"), "woken by its own timer"),
    (.wakeNeeded("a connection on port 80"), "woken by a connection on port 80"),
    (.wokenWith(web, forTimer: false), "woken with web"),
    (.starting(.autostart, .restart), "starting (autostart)"),
    (.requested(.wake), "woken on request"),
    (.pressure(.critical), "memory pressure was critical"),
    (.exited(.signaled(9)), "ended by SIGKILL"),
    (.displaced(by: "web"), "web came to the foreground"),
  ])
  func `A reason begins with the fact, and names the number`(cause: Cause, text: String) {
    #expect(cause.sentence == text)
  }

  @Test func `The reason of a start says what requested it, and keeps the request's code`() {
    for (occasion, code) in [
      (Request.Occasion?.none, "requested_start"), (.autostart, "requested_start"),
      (.connection, "requested_start"),
    ] {
      var engine = Engine(policy: LifecyclePolicy())
      let web = WorkerID("web")
      _ = engine.handle(.added(web, WorkerProfile(policy: LifecyclePolicy())), at: .zero)
      let request = Request(id: 1, verb: .start, worker: web, occasion: occasion)
      _ = engine.handle(.request(request), at: .zero)
      let cause = engine.snapshot(of: web)?.cause
      #expect(cause == (occasion.map { .starting($0, .start) } ?? .requested(.start)))
      #expect(cause?.code == code)
    }
  }
}
