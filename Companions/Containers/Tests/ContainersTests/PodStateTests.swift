import JSONLines
import Testing

@testable import KubernetesAPI
@testable import PodReports

@Suite("What is reported of one pod")
struct PodStateTests {
  typealias Instant = ContinuousClock.Instant

  /// A pod, the API, and a clock.
  private struct World {
    var cluster = FakeCluster()
    var state: PodState
    var now = Instant.now
    let pod = PodReference(namespace: "shop", name: "web", uid: "u1")

    init(qos: String = "Burstable", requests: [String: String] = ["web": "100Mi", "db": "64Mi"]) {
      var timing = ReportTiming()
      timing.pauseBetweenResizes = .seconds(1)
      state = PodState(pod, timing: timing, resizes: true)
      cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u1", requests: requests, qos: qos)
    }

    mutating func want(asleep: Bool) {
      let containers = ["db", "web"].map {
        PodView.Container(
          $0, worker: "shop.web.\($0)", state: asleep ? "hibernated" : "background")
      }
      let view = PodView(pod, containers: containers)
      state.want(
        HibernatedCondition.wanted(view), asleep: asleep ? ["db": 9 << 20, "web": 500_000] : nil)
    }

    enum Luck { case works, failsBefore(KubernetesError), answerIsLost }

    /// Carries out the next step. The result is false if there was none.
    mutating func step(_ luck: Luck = .works) -> Bool {
      guard let step = state.step(at: now) else { return false }
      if case .failsBefore(let error) = luck {
        _ = state.failed(step, error, at: now)
        return true
      }
      let (subresource, patch) = Self.request(step, pod)
      let answer =
        subresource.isEmpty
        ? cluster.answer("GET", "/api/v1/namespaces/shop/pods/web", nil)
        : cluster.answer("PATCH", "/api/v1/namespaces/shop/pods/web/\(subresource)", patch.json)
      if case .answerIsLost = luck {
        _ = state.failed(step, .unreachable("lost"), at: now)
      } else if answer.status == 200, let record = PodRecord(answer.body) {
        _ = state.answered(step, record, at: now)
      } else {
        let text = answer.body["message"]?.text ?? ""
        _ = state.failed(step, .status(answer.status, text, after: nil), at: now)
      }
      return true
    }

    private static func request(_ step: PodState.Step, _ pod: PodReference) -> (String, PodPatch) {
      switch step {
      case .read: ("", .nothing(pod))
      case .set(let condition): ("status", .set(condition, of: pod))
      case .removeCondition:
        ("status", .removeCondition(HibernatedCondition.type, of: pod))
      case .requests(.annotate(let entries)):
        (
          "status",
          .annotate(pod, [RequestPlan.annotation: RequestPlan.text(entries)])
        )
      case .requests(.forget): ("status", .annotate(pod, [RequestPlan.annotation: nil]))
      case .requests(.shrink(let requests)), .requests(.restore(let requests)):
        ("resize", .request(requests, of: pod))
      }
    }

    /// Carries out steps until there is none, with the time that waits need.
    @discardableResult
    mutating func finish() -> Bool {
      for _ in 0..<200 {
        if step() { continue }
        guard let next = state.nextTime(after: now), next - now < .seconds(301) else { return true }
        now = next
      }
      return false
    }
  }

  @Test(
    "A pod that falls asleep gets the condition and smaller requests, and its own when it wakes")
  func sleepAndWake() {
    var world = World()
    world.want(asleep: false)
    world.finish()
    #expect(world.cluster.status("shop/web") == "False")
    world.want(asleep: true)
    world.finish()
    #expect(world.cluster.status("shop/web") == "True")
    #expect(world.cluster.request("shop/web", "web") == "4Mi")
    #expect(world.cluster.request("shop/web", "db") == "9Mi")
    #expect(
      world.cluster.annotation("shop/web")
        == #"{"db":{"asleep":"9Mi","was":"64Mi"},"web":{"asleep":"4Mi","was":"100Mi"}}"#)
    world.want(asleep: false)
    world.finish()
    #expect(world.cluster.request("shop/web", "web") == "100Mi")
    #expect(world.cluster.request("shop/web", "db") == "64Mi")
    #expect(world.cluster.annotation("shop/web") == nil)
    #expect(world.cluster.status("shop/web") == "False")
    world.state.want(nil, asleep: nil)
    world.finish()
    #expect(world.cluster.condition("shop/web") == nil)
  }

  @Test("Another run of the program restores requests that the last one has lowered")
  func nextRun() {
    var world = World()
    world.want(asleep: true)
    world.finish()
    #expect(world.cluster.request("shop/web", "web") == "4Mi")
    var next = World()
    next.cluster = world.cluster
    next.want(asleep: false)
    next.finish()
    #expect(next.cluster.request("shop/web", "web") == "100Mi")
    #expect(next.cluster.annotation("shop/web") == nil)
  }

  @Test("A request that another program has set while the pod slept stays")
  func changedMeanwhile() {
    var world = World()
    world.want(asleep: true)
    world.finish()
    world.cluster.pods["shop/web"]?.change("spec") { spec in
      spec.set(
        "containers",
        FakeCluster.pod("web", uid: "u1", requests: ["web": "32Mi", "db": "9Mi"])["spec"]?[
          "containers"] ?? .null)
    }
    world.want(asleep: false)
    world.finish()
    #expect(world.cluster.request("shop/web", "web") == "32Mi")
    #expect(world.cluster.request("shop/web", "db") == "64Mi")
  }

  @Test("Requests of a Guaranteed pod stay as they are, and the condition is set")
  func guaranteed() {
    var world = World(qos: "Guaranteed")
    world.want(asleep: true)
    world.finish()
    #expect(world.cluster.status("shop/web") == "True")
    #expect(world.cluster.request("shop/web", "web") == "100Mi")
    #expect(world.cluster.annotation("shop/web") == nil)
  }

  @Test("A refused resize isn't tried again while the pod sleeps, and leaves no annotation behind")
  func refused() {
    var world = World()
    world.cluster.hasResize = false
    world.want(asleep: true)
    world.finish()
    #expect(world.cluster.status("shop/web") == "True")
    #expect(world.cluster.request("shop/web", "web") == "100Mi")
    world.want(asleep: false)
    world.finish()
    #expect(world.cluster.annotation("shop/web") == nil)
  }

  @Test("Another pod of the same name is left as it is")
  func otherPod() {
    var world = World()
    world.want(asleep: true)
    world.cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u2", requests: ["web": "100Mi"])
    world.finish()
    #expect(world.state.lostUntil != nil)
    #expect(world.cluster.condition("shop/web") == nil)
    #expect(world.cluster.request("shop/web", "web") == "100Mi")
  }

  @Test(
    "After any transitions and failures the condition and the requests are those of the true state",
    arguments: 0..<300)
  func converges(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var world = World()
    var isAsleep = false
    world.want(asleep: isAsleep)
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...1:
        isAsleep = Bool.random(using: &random)
        world.want(asleep: isAsleep)
      case 2: world.now += .milliseconds(Int.random(in: 0...400_000, using: &random))
      case 3: _ = world.step(.answerIsLost)
      case 4:
        let code = [403, 409, 422, 429, 500].randomElement(using: &random) ?? 500
        _ = world.step(.failsBefore(.status(code, "", after: nil)))
      case 5: _ = world.step(.failsBefore(.timedOut(.seconds(10))))
      default: _ = world.step()
      }
    }
    let isFinished = world.finish()
    #expect(isFinished)
    #expect(world.cluster.status("shop/web") == (isAsleep ? "True" : "False"))
    let request = world.cluster.request("shop/web", "web")
    if isAsleep {
      // The request has its former value if the API has refused the resize.
      #expect(request == "4Mi" || request == "100Mi")
    } else {
      #expect(request == "100Mi" && world.cluster.request("shop/web", "db") == "64Mi")
      #expect(world.cluster.annotation("shop/web") == nil)
    }
  }
}

/// A SplitMix64 generator: the same seed gives the same numbers.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
