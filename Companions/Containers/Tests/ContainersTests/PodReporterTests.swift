import Foundation
import JSONLines
import NIOSSL
import Testing

@testable import KubernetesAPI
@testable import PodReports

@Suite("Reports to a Kubernetes API that a test makes up, over HTTP")
struct PodReporterTests {
  private static func server() throws -> FakeKubernetes {
    let server = try FakeKubernetes()
    server.state.withLock {
      $0.cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u1", requests: ["web": "100Mi"])
    }
    return server
  }

  private static func expect(
    _ server: FakeKubernetes, _ running: RunningReporter, status: String?,
    request: String? = "100Mi"
  ) async throws {
    let isThere = try await eventually {
      server.cluster.status("shop/web") == status
        && (request == nil || server.cluster.request("shop/web", "web") == request)
    }
    let requests = server.state.withLock { $0.requests.map { "\($0.method) \($0.path)" } }
    let states = await running.reporter.states
    let shown = "\(status ?? "-") \(request ?? "-"); \(server.cluster); \(requests); \(states)"
    #expect(isThere, "\(shown); \(running.log.all)")
  }

  @Test(
    "A pod's sleep and wake become events, the condition and requests, and the end removes them")
  func life() async throws {
    let server = try Self.server()
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.reporter.didAdopt(
      running.pod, container: "web", as: "shop.web.web", terms: "policy server")
    await running.report("background")
    try await Self.expect(server, running, status: "False")
    await running.happened("suspended", "hibernated", "idle for 5 m; 51.6 MB → 0.5 MB")
    try await Self.expect(server, running, status: "True", request: nil)
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    await running.happened("hibernated", "foreground", "woken by data; 12 ms")
    try await Self.expect(server, running, status: "False")
    let areThere = try await eventually { server.cluster.events.count == 3 }
    #expect(areThere, "\(server.cluster.events)")
    let event = try #require(server.cluster.events("Hibernated").first)
    #expect(event["involvedObject"]?["uid"]?.text == "u1")
    #expect(event["involvedObject"]?["fieldPath"]?.text == "spec.containers{web}")
    #expect(event["source"]?["component"]?.text == "dormouse")
    #expect(event["reportingInstance"]?.text == "node-1" && event["type"]?.text == "Normal")
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    try await running.end()
    #expect(server.cluster.condition("shop/web") == nil)
    #expect(server.cluster.request("shop/web", "web") == "100Mi")
    #expect(server.cluster.annotation("shop/web") == nil)
    #expect(server.cluster.condition("shop/web") == nil)
  }

  @Test("A condition of an earlier run keeps its time, and `kubectl`'s other conditions stay")
  func transitionTime() async throws {
    let server = try Self.server()
    let condition = PodCondition(
      HibernatedCondition.type, .yes, reason: "Old", message: "", since: "2026-01-01T00:00:00Z")
    server.state.withLock {
      _ = $0.cluster.answer(
        "PATCH", "/api/v1/namespaces/shop/pods/web/status",
        PodPatch.set(
          condition, of: PodReference(namespace: "shop", name: "web", uid: "u1")
        ).json)
    }
    let running = try RunningReporter(KubernetesAccess(url: server.url), resizes: false)
    await running.report("hibernated")
    let isSet = try await eventually {
      server.cluster.condition("shop/web")?["reason"]?.text == "Hibernated"
    }
    #expect(isSet)
    #expect(
      server.cluster.condition("shop/web")?["lastTransitionTime"]?.text == "2026-01-01T00:00:00Z")
    #expect(server.cluster.request("shop/web", "web") == "100Mi")
    // Without the option nothing but `pods/status` is used.
    let paths = server.state.withLock { Set($0.requests.map { "\($0.method) \($0.path)" }) }
    #expect(
      paths == ["PATCH /api/v1/namespaces/shop/pods/web/status?fieldManager=dormouse-containers"])
    try await running.end()
    #expect(server.cluster.pods["shop/web"]?["status"]?["conditions"]?.elements?.count == 1)
  }

  @Test(
    "An API that is away, slow or wrong is logged once, and the state is right afterwards",
    arguments: [0, 1, 2, 3])
  func outages(kind: Int) async throws {
    let server = try Self.server()
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.report("background")
    try await Self.expect(server, running, status: "False")
    switch kind {
    case 0: try server.stop()
    case 1: server.state.withLock { $0.fault = .status(503) }
    case 2: server.state.withLock { $0.fault = .loseAnswer }
    default: server.state.withLock { $0.fault = .garbage }
    }
    if kind == 0 {
      // The connection that is open must not be used.
      server.state.withLock { $0.fault = .status(500) }
    }
    await running.happened("suspended", "hibernated", "idle")
    await running.report("hibernated")
    try await running.log.wait(for: "pods are managed all the same")
    for _ in 0..<20 { await running.happened("hibernated", "foreground", "woken") }
    await running.report("hibernated")
    server.state.withLock { $0.fault = nil }
    if kind == 0 { try server.start() }
    try await Self.expect(server, running, status: "True", request: "4Mi")
    try await running.log.wait(for: "answers")
    #expect(running.log.count("pods are managed all the same") == 1, "\(running.log.all)")
    let isReported = try await eventually {
      server.cluster.events("Woken").first?["count"]?.integer == 20
    }
    #expect(isReported && server.cluster.events.count == 2, "\(server.cluster.events)")
    try await running.end()
  }

  @Test("What the role doesn't permit is logged once with the role's name, and the rest works")
  func forbidden() async throws {
    let server = try Self.server()
    server.state.withLock { $0.refused = ["/events": 403, "/pods/web": 403] }
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.report("background")
    await running.happened("suspended", "hibernated", "idle")
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    try await running.log.wait(for: "doesn't permit `create` and `patch` of `events`")
    try await running.log.wait(for: "doesn't permit `get` of `pods`")
    server.state.withLock { $0.refused = [:] }
    let isReported = try await eventually { server.cluster.events("Hibernated").count == 1 }
    #expect(isReported)
    #expect(running.log.count("events.yaml") == 2, "\(running.log.all)")
    try await running.end()
  }

  @Test("Another pod of the same name isn't changed, and nothing is logged about it")
  func otherPod() async throws {
    let server = try Self.server()
    server.state.withLock { $0.cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u2") }
    let running = try RunningReporter(KubernetesAccess(url: server.url), resizes: false)
    await running.report("hibernated")
    // The API is asked again, in case the pod appears.
    let isAskedAgain = try await eventually {
      server.state.withLock { $0.requests.count } > 1
    }
    #expect(isAskedAgain)
    try await running.end()
    #expect(server.cluster.condition("shop/web") == nil)
    #expect(running.log.all.isEmpty, "\(running.log.all)")
  }

  @Test("A request that a quota doesn't let restore is logged once, and restored when it does")
  func quota() async throws {
    let server = try Self.server()
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    server.state.withLock { $0.cluster.quota = 50 }
    await running.report("foreground")
    try await running.log.wait(for: "can't be restored yet: it has answered with status 403")
    let isTriedAgain = try await eventually {
      server.state.withLock { $0.requests.count { $0.path.contains("/resize") } } > 3
    }
    #expect(isTriedAgain && running.log.count("can't be restored yet") == 1)
    server.state.withLock { $0.cluster.quota = nil }
    try await Self.expect(server, running, status: "False")
    try await running.end()
  }

  @Test("A restored request that the node has no room for is reported")
  func deferred() async throws {
    let server = try Self.server()
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    server.state.withLock { state in
      state.cluster.pods["shop/web"]?.change("status") {
        $0.set("resize", .string("Infeasible"))
      }
    }
    await running.report("foreground")
    try await Self.expect(server, running, status: "False")
    let isReported = try await eventually {
      server.cluster.events("RequestsNotRestored").count == 1
    }
    #expect(isReported && running.log.count("aren't applied: Infeasible") == 1)
    try await running.end()
  }

  @Test("A daemon that doesn't answer makes the condition unknown, and restores requests")
  func noDaemon() async throws {
    let server = try Self.server()
    let running = try RunningReporter(KubernetesAccess(url: server.url))
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    await running.reporter.daemonDidDisconnect()
    try await Self.expect(server, running, status: "Unknown")
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    // The container is released: Dormouse doesn't manage it any more.
    await running.report(nil)
    try await Self.expect(server, running, status: nil)
    try await running.end()
  }

  @Test("The token is read at each request, and an API by HTTPS is checked against its authority")
  func security() async throws {
    let scratch = try ScratchDirectory()
    func file(_ name: String, _ text: String) throws -> String {
      try Data(text.utf8).write(to: URL(filePath: "\(scratch.path)/\(name)"))
      return "\(scratch.path)/\(name)"
    }
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(TestCertificates.server.utf8))
        .map { .certificate($0) },
      privateKey: .privateKey(
        try NIOSSLPrivateKey(bytes: Array(TestCertificates.serverKey.utf8), format: .pem)))
    configuration.certificateVerification = .noHostnameVerification
    configuration.trustRoots = .certificates(
      try NIOSSLCertificate.fromPEMBytes(Array(TestCertificates.authority.utf8)))
    let server = try FakeKubernetes(security: NIOSSLContext(configuration: configuration))
    server.state.withLock {
      $0.cluster.pods["shop/web"] = FakeCluster.pod("web", uid: "u1", requests: ["web": "100Mi"])
    }
    var access = KubernetesAccess(
      url: server.url, tokenFile: try file("token", "first\n"),
      authorityFile: try file("ca.crt", TestCertificates.authority),
      certificateFile: try file("client.crt", TestCertificates.client),
      keyFile: try file("client.key", TestCertificates.clientKey))
    let running = try RunningReporter(access)
    await running.report("background")
    try await Self.expect(server, running, status: "False")
    _ = try file("token", "second")
    await running.report("hibernated")
    try await Self.expect(server, running, status: "True", request: "4Mi")
    let tokens = server.state.withLock { state in
      state.requests.compactMap { $0.headers.first(name: "Authorization") }
    }
    #expect(tokens.first == "Bearer first" && tokens.last == "Bearer second")
    try await running.end()
    // With another authority no request is sent, and so no token either.
    let count = server.state.withLock { $0.requests.count }
    access.authorityFile = try file("other.crt", TestCertificates.otherAuthority)
    let deceived = try RunningReporter(access)
    await deceived.report("background")
    try await deceived.log.wait(for: "it can't be reached")
    #expect(server.state.withLock { $0.requests.count } == count)
    try await deceived.end()
    access.authorityFile = try file("none.crt", "")
    #expect(throws: KubernetesHTTP.Unusable.self) { try KubernetesHTTP.client(for: access) }
  }
}
