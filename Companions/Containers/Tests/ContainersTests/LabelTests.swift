import Policy
import Testing

@testable import ContainerPlan

@Suite("What the labels of a container say") struct LabelTests {
  private func read(
    _ labels: [String: String], name: String = "web", image: [String: String]? = [:]
  ) -> LabelReading {
    var container = Container(
      runtime: "docker", id: "3f2a8b19c0de77", name: name, labels: labels, pid: 100)
    container.imageLabels = image
    return LabelReading(container)
  }

  @Test("A container without labels of Dormouse isn't adopted, and nothing is said about it")
  func foreign() {
    for labels in [[:], ["com.docker.compose.project": "shop"], ["dormousepolicy": "server"]] {
      #expect(read(labels).wish == nil && read(labels).problems.isEmpty)
    }
  }

  @Test("All labels together make the wish, with settings in their order")
  func full() throws {
    let reading = read([
      "dormouse.policy": "server", "dormouse.hibernate.after": "5m",
      "dormouse.background.suspend_after": "2s", "dormouse.importance": "30",
      "dormouse.may_terminate": "true", "dormouse.mode": "shadow", "dormouse.name": "shop.web",
      "other": "x",
    ])
    let wish = try #require(reading.wish)
    #expect(reading.problems.isEmpty)
    #expect(wish.policy == "server" && wish.name == "shop.web" && wish.importance == 30)
    #expect(wish.settings == ["background.suspend_after=2s", "hibernate.after=5m"])
    #expect(wish.mayTerminate && wish.isShadow)
    #expect(
      wish.terms
        == "policy server, background.suspend_after=2s, hibernate.after=5m, importance 30, "
        + "may be terminated, "
        + "shadow mode")
  }

  @Test(
    "Health checks that are answered asleep are a list; a wrong one is reported, the others count")
  func healthChecks() throws {
    let key = "dormouse.health_checks_while_asleep"
    let reading = read(["dormouse.policy": "server", key: "8081/healthz, 8081/readyz ,8080"])
    #expect(reading.problems.isEmpty)
    #expect(reading.wish?.healthChecks == ["8081/healthz", "8081/readyz", "8080"])
    #expect(
      reading.wish?.terms
        == "policy server, answers 8081/healthz and 8081/readyz and 8080 while it sleeps")
    for (value, wrong) in [("8080,http", "http"), ("8080,", ""), ("8080,/healthz", "/healthz")] {
      let reading = read(["dormouse.policy": "server", key: value])
      #expect(reading.wish?.healthChecks == ["8080"] && reading.wish?.settings == [])
      #expect(reading.problems.count == 1)
      let problem = reading.problems.joined()
      #expect(problem.hasPrefix("label \(key)=\(value)"), "\(problem)")
      #expect(problem.contains("`\(wrong)` isn't a health check"), "\(problem)")
    }
    let annotations = [
      "dormouse.io/health_checks_while_asleep": "8081/healthz",
      "db.dormouse.io/health_checks_while_asleep": "5432",
    ]
    #expect(PodAnnotations.labels(of: "db", in: annotations) == [key: "5432"])
    #expect(PodAnnotations.labels(of: "web", in: annotations) == [key: "8081/healthz"])
  }

  @Test("Labels of an image adopt nothing and permit nothing, and a line says so")
  func image() throws {
    let image = [
      "dormouse.policy": "server", "dormouse.may_terminate": "true", "dormouse.importance": "0",
      "dormouse.image_labels": "true", "maintainer": "x",
    ]
    let alone = read(image, image: image)
    #expect(alone.wish == nil && alone.problems.count == 1)
    #expect(
      alone.problems.joined().hasPrefix(
        "labels that its image has as well have no effect: `dormouse.image_labels`, "
          + "`dormouse.importance`, "
          + "`dormouse.may_terminate`, `dormouse.policy`"), "\(alone.problems)")
    // The container's own labels count beside them, also where the image has another value.
    var labels = image
    labels["dormouse.policy"] = "other"
    labels["dormouse.hibernate.after"] = "5m"
    let reading = read(labels, image: image)
    let wish = try #require(reading.wish)
    #expect(wish.policy == "other" && wish.settings == ["hibernate.after=5m"])
    #expect(!wish.mayTerminate && wish.importance == nil && reading.problems.count == 1)
    // Others of the image's labels aren't mentioned.
    #expect(read(["maintainer": "x"], image: ["maintainer": "x"]).problems.isEmpty)
  }

  @Test("A container's own label accepts those of its image, and its own ones count more")
  func acceptedImage() throws {
    let image = ["dormouse.policy": "server", "dormouse.importance": "0"]
    var labels = image
    labels["dormouse.image_labels"] = "true"
    labels["dormouse.importance"] = "30"
    let reading = read(labels, image: image)
    let wish = try #require(reading.wish)
    #expect(wish.policy == "server" && wish.importance == 30 && reading.problems.isEmpty)
    labels["dormouse.image_labels"] = "yes"
    #expect(read(labels, image: image).wish == nil)
  }

  @Test("If the image can't be read, no label counts")
  func unknownImage() {
    let unknown = read(
      ["dormouse.policy": "server", "dormouse.image_labels": "true"], image: nil)
    #expect(unknown.wish == nil && unknown.problems.count == 1)
    #expect(unknown.problems.joined().contains("its image can't be read"))
    #expect(read(["maintainer": "x"], image: nil).problems.isEmpty)
  }

  @Test("`dormouse.enable` adopts with the machine's policy, or keeps a container out")
  func enable() {
    #expect(read(["dormouse.enable": "true"]).wish?.terms == "the machine's policy")
    let disabled = read([
      "dormouse.enable": "false", "dormouse.policy": "server", "dormouse.x": "y",
    ])
    #expect(disabled.wish == nil && disabled.problems.isEmpty)
    let unclear = read(["dormouse.enable": "no", "dormouse.policy": "server"])
    #expect(unclear.wish == nil && unclear.problems.count == 1)
    let alone = read(["dormouse.hibernate.after": "5m"])
    #expect(alone.wish == nil && alone.problems[0].contains("add `dormouse.policy=NAME`"))
  }

  @Test(
    "A wrong label says its value and what is allowed, and the others have their effect",
    arguments: [
      ("importance", "101", "a number from 0 to 100"),
      ("importance", "high", "a number from 0 to 100"),
      ("may_terminate", "yes", "`true` and `false`"),
      ("mode", "off", "`shadow` and `manage`"),
      ("name", "-a/b", "a–z and A–Z, digits"),
      ("hibernate.aftr", "5m", "did you mean `hibernate.after`?"),
      ("hibernate.after", "5", "needs a unit"),
      ("hibernate.after", "5m\nmode: shadow", "line break"),
      ("foreground.max", "3", "can't be set for one"),
      ("zebra", "5m", "unknown key `zebra`"),
    ])
  func wrong(key: String, value: String, allowed: String) throws {
    let reading = read([
      "dormouse.policy": "server", "dormouse.background.suspend_after": "2s",
      "dormouse.\(key)": value,
    ])
    let wish = try #require(reading.wish)
    #expect(wish.policy == "server" && wish.settings == ["background.suspend_after=2s"])
    #expect(reading.problems.count == 1)
    let problem = reading.problems.joined()
    #expect(problem.hasPrefix("label dormouse.\(key)=") && problem.contains(allowed), "\(problem)")
    #expect(!problem.contains("\n"))
  }

  @Test("A policy is a name, never a path, and a wrong one doesn't adopt with another policy")
  func policyNames() {
    for name in ["../../etc/shadow", "/etc/x.yaml", "", " ", "a b"] {
      let reading = read(["dormouse.policy": name])
      #expect(reading.wish == nil && reading.problems.count == 1, "\(name)")
    }
  }

  @Test(
    "A worker's name is made of the container's, and is always valid",
    arguments: [
      ("web", "web"), ("shop-web-1", "shop-web-1"), ("--x", "x"), ("ü", "container-3f2a8b19c0de"),
      ("a/b c", "a-b-c"), (".", "container-3f2a8b19c0de"), ("", "container-3f2a8b19c0de"),
      (String(repeating: "n", count: 90), String(repeating: "n", count: 64)),
    ])
  func naming(name: String, expected: String) {
    #expect(read(["dormouse.policy": "server"], name: name).wish?.name == expected)
    #expect(NameRule.allows(expected))
  }

  @Test("Annotations of a pod are labels of its containers, and one for a container counts more")
  func annotations() throws {
    let annotations = [
      "dormouse.io/policy": "server", "dormouse.io/hibernate.after": "5m", "other.io/policy": "x",
      "web.dormouse.io/hibernate.after": "1m", "db.dormouse.io/enable": "false",
      "notdormouse.io/policy": "x",
    ]
    #expect(PodAnnotations.matter(annotations))
    #expect(PodAnnotations.matter(["web.dormouse.io/policy": "server"]))
    #expect(!PodAnnotations.matter(["notdormouse.io/policy": "server", "dormouse.io": "x"]))
    #expect(
      PodAnnotations.labels(of: "web", in: annotations)
        == ["dormouse.policy": "server", "dormouse.hibernate.after": "1m"])
    #expect(PodAnnotations.labels(of: "db", in: annotations)["dormouse.enable"] == "false")
    var container = Container(
      runtime: "containerd", id: "3f2a", name: "default.shop.web",
      labels: ["dormouse.policy": "server", "dormouse.importance": "high"], pid: 100)
    container.pod = "p"
    let reading = LabelReading(container)
    #expect(reading.wish?.name == "default.shop.web")
    #expect(
      reading.problems.first?.hasPrefix("annotation dormouse.io/importance: high: ignored") == true)
  }

  @Test("A name that is taken gets the beginning of the container's id")
  func unique() {
    let id = "3f2a8b19c0de77aabbccddee00"
    #expect(WorkerNaming.unique("web", id, taken: []) == "web")
    #expect(WorkerNaming.unique("web", id, taken: ["web"]) == "web-3f2a8b")
    #expect(WorkerNaming.unique("web", id, taken: ["web", "web-3f2a8b"]) == "web-3f2a8b19c0de")
    let long = String(repeating: "n", count: 64)
    #expect(WorkerNaming.unique(long, id, taken: [long]).utf8.count == 64)
    let taken: Set = ["web", "web-3f2a8b", "web-3f2a8b19c0de", "web-3f2a8b19c0de77aabbccddee"]
    #expect(WorkerNaming.unique("web", id, taken: taken) == "web-2")
  }

  @Test("A pod's long name is shortened in its middle, and keeps namespace, container and its end")
  func longPods() throws {
    func name(_ pod: String, _ container: String = "web") -> String? {
      var shape = Container(
        runtime: "containerd", id: "3f2a8b19c0de", name: "production.\(pod).\(container)",
        labels: ["dormouse.policy": "server"], pid: 1)
      shape.member = PodMember(
        namespace: "production", pod: pod, uid: "u1", container: container)
      return LabelReading(shape).wish?.name
    }
    #expect(name("shop-7f9c4d5b6-x8kzq") == "production.shop-7f9c4d5b6-x8kzq.web")
    let long = "recommendations-of-the-shop-for-all-customers-7f9c4d5b6-x8kzq"
    #expect(name(long) == "production.recommendations-of-the-shop-for-7f9c4d5b6-x8kzq.web")
    #expect(name(long)?.utf8.count ?? 99 <= 64)
    #expect(name(long) != name(long.replacing("x8kzq", with: "x8kzr")))
    // Dots of the pod's name: the first and the last dot of a worker's name are the borders.
    #expect(name("web.v2-0") == "production.web.v2-0.web")
    #expect(name(long, String(repeating: "c", count: 63))?.utf8.count == 64)
  }
}
