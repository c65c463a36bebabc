import Foundation
import Testing

@Suite("The dashboard's server") struct ServerTests {
  private func dashboard(_ options: [String] = []) throws -> RunningDashboard {
    try RunningDashboard(socket: "/nonexistent/control.sock", options)
  }

  @Test(
    "The printed address sets a cookie that scripts can't read, and hides the token"
  )
  func login() throws {
    let dashboard = try dashboard()
    let answer = try dashboard.client.get("/?token=\(dashboard.token)")
    #expect(answer.status == 303 && answer.headers["location"] == "/")
    let cookie = try #require(answer.headers["set-cookie"])
    #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
    let value = String(cookie.prefix { $0 != ";" })
    #expect(value.hasPrefix("dormouse-\(dashboard.client.port)=") && cookie.contains("Max-Age="))
    let page = try dashboard.client.get("/", ["Cookie": value])
    #expect(page.status == 200 && page.body.contains("<title>Dormouse</title>"))
    #expect(!page.body.contains(dashboard.token))
    // A browser that has a session also gets an address without the token.
    #expect(try dashboard.client.get("/?token=\(dashboard.token)", ["Cookie": value]).status == 303)
  }

  @Test("Each browser has a session of its own, never the token; neither is accepted as the other")
  func sessions() throws {
    let dashboard = try dashboard()
    let answer = try dashboard.client.get("/?token=\(dashboard.token)")
    let cookie = try #require(answer.headers["set-cookie"]?.prefix { $0 != ";" }).description
    #expect(!cookie.contains(dashboard.token) && dashboard.cookie["Cookie"] != cookie)
    let name = "dormouse-\(dashboard.client.port)="
    let asToken = ["Cookie": name + dashboard.token]
    #expect(try dashboard.client.get("/", asToken).status == 401)
    let asBearer = ["Authorization": "Bearer \(cookie.dropFirst(name.count))"]
    #expect(try dashboard.client.get("/", asBearer).status == 401)
    let asAddress = "/?token=\(cookie.dropFirst(name.count))"
    #expect(try dashboard.client.get(asAddress).status == 401)
    for value in [cookie, try #require(dashboard.cookie["Cookie"])] {
      #expect(try dashboard.client.get("/", ["Cookie": value]).status == 200)
    }
  }

  @Test("A connection that doesn't show the token is closed; one that has shown it stays open")
  func timeout() throws {
    let dashboard = try dashboard()
    let idle = try dashboard.client.open("GET", "/assets/app.css", [:], closes: false)
    let page = try dashboard.client.open("GET", "/api/stream", dashboard.cookie, closes: false)
    defer {
      close(idle)
      close(page)
    }
    // The call returns at the end of the stream.
    #expect(try WebClient.read(idle) { _ in false }.hasPrefix("HTTP/1.1 200"))
    _ = try WebClient.read(page) { $0.contains("event: ") }
    let text = try WebClient.read(page) { $0.contains("event: ") }
    #expect(text.contains("event: "))
  }

  @Test(
    "Without the token nothing but the style and scripts is served",
    arguments: [
      "/", "/?token=wrong", "/workers/web", "/api/stream", "/api/workers/web/stream", "/metrics",
      "/nothing",
    ])
  func noToken(path: String) throws {
    let dashboard = try dashboard()
    let answer = try dashboard.client.get(path)
    #expect(answer.status == 401 && answer.body.contains("dormouse dashboard"))
    #expect(try dashboard.client.get("/assets/app.css").status == 200)
  }

  @Test(
    "Every answer forbids scripts and frames of others, and says nothing about where it is from")
  func headers() throws {
    let dashboard = try dashboard()
    for (path, headers) in [
      ("/", dashboard.cookie), ("/", [:]), ("/assets/common.js", [:]),
      ("/nothing", dashboard.cookie),
    ] {
      let answer = try dashboard.client.get(path, headers)
      let policy = try #require(answer.headers["content-security-policy"])
      #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"))
      #expect(policy.contains("frame-ancestors 'none'"))
      #expect(answer.headers["x-content-type-options"] == "nosniff")
      #expect(answer.headers["referrer-policy"] == "no-referrer")
      #expect(answer.headers["cache-control"] == "no-store")
      #expect(
        answer.headers["access-control-allow-origin"] == nil && answer.headers["server"] == nil)
    }
  }

  @Test("A request with another host is refused, even with the token")
  func rebinding() throws {
    let dashboard = try dashboard()
    for host in [
      "rebound.example:\(dashboard.client.port)", "127.0.0.1", "localhost:1",
      "10.0.0.1:\(dashboard.client.port)",
    ] {
      let answer = try dashboard.client.request("GET", "/", dashboard.cookie, host: host)
      #expect(answer.status == 421, "\(host)")
    }
    let localhost = "localhost:\(dashboard.client.port)"
    #expect(
      try dashboard.client.request("GET", "/", dashboard.cookie, host: localhost).status == 200)
  }

  @Test("A change without the page's token, or from another site's page, is refused")
  func forgery() throws {
    let dashboard = try dashboard()
    let path = "/api/workers/web/wake"
    #expect(try dashboard.client.request("POST", path).status == 401)
    #expect(try dashboard.client.request("POST", path, dashboard.cookie).status == 403)
    var headers = dashboard.cookie
    headers["X-Dormouse-Token"] = dashboard.token
    #expect(try dashboard.client.request("POST", path, headers).status == 403)
    headers["X-Dormouse-Token"] = try dashboard.actionToken()
    for (name, value) in [
      ("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"),
    ] {
      #expect(
        try dashboard.client.request("POST", path, headers.merging([name: value]) { $1 }).status
          == 403)
    }
    // The request is right, but there is no daemon.
    let answer = try dashboard.client.request("POST", path, headers)
    #expect(answer.status == 503 && answer.body.contains("no daemon answers"))
    #expect(
      try dashboard.client.request("POST", path, ["Authorization": "Bearer \(dashboard.token)"])
        .status == 503)
  }

  @Test(
    "Requests that don't exist are answered, and change nothing",
    arguments: [
      ("POST", "/api/workers/web/terminate", 404), ("POST", "/api/workers//wake", 404),
      ("POST", "/api/workers/%ff/wake", 404), ("POST", "/", 404), ("DELETE", "/", 405),
      ("GET", "/workers/", 404),
      ("GET", "/workers/a/b", 404), ("GET", "/../etc/passwd", 404), ("HEAD", "/", 200),
    ])
  func unknown(method: String, path: String, status: Int) throws {
    let dashboard = try dashboard()
    let headers = ["Authorization": "Bearer \(dashboard.token)"]
    #expect(try dashboard.client.request(method, path, headers).status == status)
  }

  @Test("Without a daemon the stream says so, and each page gets it")
  func noDaemon() throws {
    let dashboard = try dashboard()
    let text = try dashboard.client.stream("/api/stream", dashboard.cookie) {
      $0.contains("\"problem\"")
    }
    #expect(text.contains("no daemon answers at /nonexistent/control.sock"))
    let page = try dashboard.client.stream("/api/workers/web/stream", dashboard.cookie) {
      $0.contains("event: missing")
    }
    #expect(page.contains("no daemon answers"))
  }

  @Test(
    "An address that other machines reach needs --allow-remote; a wrong one is refused"
  )
  func remote() throws {
    let refused = try Programs.run(Programs.dashboard, ["--listen", "0.0.0.0:0"])
    #expect(refused.code == 64 && refused.output.contains("--allow-remote"))
    let wrong = try Programs.run(Programs.dashboard, ["--listen", "example.org:80"])
    #expect(wrong.code == 64 && wrong.output.contains("example.org:80"))
  }

  @Test(
    "A page too many is refused, and a request that asks only for the head of a stream opens none")
  func maxPages() throws {
    let dashboard = try dashboard()
    for _ in 0..<40 {
      #expect(try dashboard.client.request("HEAD", "/api/stream", dashboard.cookie).status == 200)
    }
    let pages = try (0..<32).map { _ in
      try dashboard.client.open("GET", "/api/stream", dashboard.cookie, closes: false)
    }
    for page in pages { _ = try WebClient.read(page) { $0.contains("event: hello") } }
    let refused = try dashboard.client.stream("/api/stream", dashboard.cookie) {
      $0.contains("event: missing")
    }
    #expect(refused.contains("32 pages are open"))
    for page in pages { close(page) }
    let isFree = try eventually {
      try dashboard.client.stream("/api/stream", dashboard.cookie) { $0.contains("event: ") }
        .contains("event: hello")
    }
    #expect(isFree)
  }

  @Test(
    "The connections of another user don't keep this one from its page",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func crowd() throws {
    let dashboard = try dashboard()
    // The script opens more connections than the server accepts in all, without a request. It opens
    // closed ones again.
    let script = """
      import os, select, socket, time
      os.setgid(65534); os.setuid(65534)
      held = []
      def add():
          c = socket.socket(); c.settimeout(60)
          c.connect(("127.0.0.1", \(dashboard.client.port))); held.append(c)
      while len(held) < 300: add()
      print("full", flush=True)
      end = time.monotonic() + 200
      while time.monotonic() < end:
          for c in select.select(held, [], [], 1)[0]:
              held.remove(c); c.close(); time.sleep(0.05); add()
      """
    let crowd = Process()
    crowd.executableURL = URL(filePath: "/usr/bin/env")
    crowd.arguments = ["python3", "-c", script]
    let output = Pipe()
    crowd.standardInput = FileHandle.nullDevice
    crowd.standardOutput = output
    try crowd.run()
    defer {
      kill(crowd.processIdentifier, SIGKILL)
      crowd.waitUntilExit()
    }
    _ = try WebClient.read(output.fileHandleForReading.fileDescriptor) { $0.contains("full") }
    for _ in 0..<5 {
      #expect(try dashboard.client.get("/", dashboard.cookie).status == 200)
    }
  }

  @Test("A port that is taken is reported with what to do")
  func taken() throws {
    let dashboard = try dashboard()
    let outcome = try Programs.run(
      Programs.dashboard, ["--listen", "127.0.0.1:\(dashboard.client.port)"])
    #expect(outcome.code == 73 && outcome.output.contains("--listen"), "\(outcome)")
  }

  @Test(
    "A process of another user gets no page, even with the token",
    .enabled(if: geteuid() == 0, "only root can be two users"))
  func otherUser() throws {
    let dashboard = try dashboard()
    let script = """
      import os, socket
      os.setgid(65534); os.setuid(65534)
      c = socket.socket()
      c.connect(("127.0.0.1", \(dashboard.client.port)))
      c.sendall(b"GET / HTTP/1.1\\r\\nHost: 127.0.0.1:\(dashboard.client.port)\\r\\nConnection: \
      close\\r\\n"
                b"Authorization: Bearer \(dashboard.token)\\r\\n\\r\\n")
      while part := c.recv(65536): os.write(1, part)
      """
    // The dashboard is root's, and the request is of the user 65534.
    let outcome = try Programs.run("/usr/bin/env", ["python3", "-c", script])
    #expect(
      outcome.output.hasPrefix("HTTP/1.1 403") && outcome.output.contains("65534"), "\(outcome)")
  }
}
