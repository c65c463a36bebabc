import JSONLines
import Testing

@testable import KubernetesAPI
@testable import PodReports

@Suite("Messages of the Kubernetes API")
struct KubernetesMessageTests {
  @Test(
    "Amounts of memory are read as the API writes them",
    arguments: [
      ("128Mi", 134_217_728), ("1.5Gi", 1_610_612_736), ("500M", 500_000_000), ("0", 0),
      ("128974848", 128_974_848), ("1e3", 1000), ("2E2", 200), ("1E", 1_000_000_000_000_000_000),
      ("1500m", 2), ("64Ki", 65536), ("129e6", 129_000_000),
    ])
  func quantities(text: String, bytes: Int64) {
    #expect(MemoryQuantity(text)?.bytes == bytes)
    #expect(MemoryQuantity(text)?.text == text)
  }

  @Test(
    "What isn't an amount of memory isn't read",
    arguments: [
      "", "Mi", "-1", "1 Mi", "1mi", "1.2.3", "99999999999999999999Gi", "1e99", "nan", "٣",
    ])
  func noQuantities(text: String) { #expect(MemoryQuantity(text) == nil) }

  @Test("A request of a sleeping container is whole Mi, rounded up, and at least the floor")
  func rounding() {
    #expect(MemoryQuantity(roundingUp: 1, floor: 4 << 20).text == "4Mi")
    #expect(MemoryQuantity(roundingUp: (9 << 20) + 1, floor: 4 << 20).text == "10Mi")
    #expect(MemoryQuantity(roundingUp: -5, floor: 0).text == "0Mi")
    #expect(MemoryQuantity(roundingUp: .max, floor: 0).bytes > 0)
  }

  @Test(
    "Times are those of the calendar",
    arguments: [
      (0, "1970-01-01T00:00:00Z"), (1_763_714_767, "2025-11-21T08:46:07Z"),
      (951_782_400, "2000-02-29T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
      (4_107_542_400, "2100-03-01T00:00:00Z"),
    ])
  func times(seconds: Int64, text: String) { #expect(APITime.text(seconds) == text) }

  @Test("A pod is read with its conditions, requests and the reasons against a resize")
  func pods() throws {
    let text = #"""
      {"metadata":{"uid":"u1","name":"web","annotations":{"a":"b"},"deletionTimestamp":"2026-11-2\#
      1T08:46:07Z"},
       "spec":{"containers":[{"name":"web","resources":{"requests":{"memory":"1Gi"}},
         "resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"},
                         {"resourceName":"memory","restartPolicy":"NotRequired"}]}],
       "initContainers":[{"name":"proxy","restartPolicy":"Always","resources":{"requests":{"memor\#
      y":"32Mi"}}}]},
       "status":{"qosClass":"Burstable","conditions":[{"type":"PodResizePending","status":"True",
         "reason":"Deferred","message":"no room"}]}}
      """#
    let record = try #require(JSON(Array(text.utf8)).flatMap(PodRecord.init))
    #expect(record.isEnding && record.annotations == ["a": "b"])
    #expect(record.containers.map(\.name) == ["web", "proxy"])
    #expect(record.containers.map(\.isInit) == [false, true])
    #expect(record.pendingResize?.reason == "Deferred")
    #expect(RequestPlan.obstacle(record) == nil)
    let entries = RequestPlan.entries(record, footprints: ["web": 600_000, "proxy": 40 << 20])
    #expect(entries.keys.sorted() == ["web"])
    let patch = PodPatch.request(
      [MemoryRequest("proxy", try #require(MemoryQuantity("4Mi")), isInit: true)],
      of: PodReference(namespace: "n", name: "web", uid: "u1"))
    #expect(
      String(decoding: patch.json.line, as: UTF8.self)
        == #"{"metadata":{"uid":"u1"},"spec":{"initContainers":[{"name":"proxy","resources":"#
        + #"{"requests":{"memory":"4Mi"}}}]}}"#)
  }

  @Test("The annotation with the requests is read as it was written, and garbage is no annotation")
  func annotation() throws {
    let entry = RequestPlan.Entry(
      was: try #require(MemoryQuantity("0.5Gi")), asleep: try #require(MemoryQuantity("4Mi")))
    var record = try #require(
      PodRecord(FakeCluster.pod("web", uid: "u1", requests: ["web": "0.5Gi"])))
    record.annotations[RequestPlan.annotation] = RequestPlan.text(["web": entry])
    #expect(RequestPlan.formerRequests(record) == ["web": entry])
    #expect(
      RequestPlan.shrinking(record, footprints: ["web": 1])
        == .shrink([MemoryRequest("web", entry.asleep)]))
    record.annotations[RequestPlan.annotation] = "{"
    #expect(RequestPlan.formerRequests(record) == nil)
    #expect(RequestPlan.restoring(record) == .forget)
  }

  @Test("A pod's service account is found by the environment, with addresses of both kinds")
  func account() {
    let four = KubernetesAccess.ofPod(
      { ["KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"][$0] })
    #expect(four?.url == "https://10.96.0.1:443")
    #expect(four?.tokenFile == "/var/run/secrets/kubernetes.io/serviceaccount/token")
    let six = KubernetesAccess.ofPod(
      { ["KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"][$0] })
    #expect(six?.url == "https://[fd00::1]:6443")
    #expect(KubernetesAccess.ofPod({ _ in nil }) == nil)
  }
}
