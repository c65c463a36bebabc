import Control
import Glibc
import HTTPTypes
import Hummingbird
import JSONLines
import NIOCore

/// Answers requests. `RequestGate` decides which are permitted.
struct Dashboard: HTTPResponder {
  typealias Context = ConnectionContext

  let gate: RequestGate
  let hub: Hub
  let actions: ActionRunner
  /// The threads for /proc and logs.
  let files = BlockingPool(threads: 2)

  func respond(to request: Request, context: ConnectionContext) async throws -> Response {
    var response: Response
    do throws(RequestGate.Denial) {
      response = try await answer(request, context)
    } catch {
      response = Self.text(error.status, error.text)
    }
    if request.method == .head { response = response.createHeadResponse() }
    return Self.secured(response)
  }

  private func answer(
    _ request: Request, _ context: ConnectionContext
  ) async throws(RequestGate.Denial) -> Response {
    let local = context.local
    let facts = RequestGate.Facts(
      host: request.head.authority, origin: request.headers[.origin],
      site: request.headers[.fetchSite],
      cookie: RequestGate.cookie(
        RequestGate.cookieName(port: local?.port ?? 0), in: request.headers[.cookie]),
      authorization: request.headers[.authorization], actionToken: request.headers[.dormouseToken],
      peer: context.peer, local: local)
    if let denial = await connectionDenial(facts) { throw denial }
    let path = request.uri.path
    let reads = request.method == .get || request.method == .head
    if reads, path == "/", let login = logIn(request, facts) { return login }
    let end: ContinuousClock.Instant?
    do throws(RequestGate.Denial) { end = try gate.checkToken(facts) } catch {
      if reads, let asset = Pages.assets[path] { return asset }
      throw error
    }
    context.permit()
    if reads { return await page(path, until: end) }
    guard request.method == .post else { return Self.text(405, "Only GET and POST are answered.") }
    try gate.checkAction(facts)
    return await act(path)
  }

  private func connectionDenial(_ facts: RequestGate.Facts) async -> RequestGate.Denial? {
    let check: @Sendable () -> RequestGate.Denial? = { [gate] in
      do throws(RequestGate.Denial) {
        try gate.checkConnection(facts)
        return nil
      } catch { return error }
    }
    do {
      return try await files.run(check)
    } catch { return .unknownPeer }
  }

  /// Answers `/?token=…`, the address that is printed. The browser gets a session, and the token is
  /// removed from the address.
  private func logIn(_ request: Request, _ facts: RequestGate.Facts) -> Response? {
    guard let token = request.uri.queryParameters["token"], gate.token.matches(token) else {
      return nil
    }
    let name = RequestGate.cookieName(port: facts.local?.port ?? 0)
    return Response(
      status: .seeOther,
      headers: [
        .location: "/",
        .setCookie: "\(name)=\(gate.sessions.begin().text); Path=/; "
          + "Max-Age=\(Sessions.lifetime.components.seconds); HttpOnly; SameSite=Strict",
      ])
  }

  // MARK: reading

  /// - Parameter end: The end of the browser's session.
  private func page(_ path: String, until end: ContinuousClock.Instant?) async -> Response {
    if let asset = Pages.assets[path] { return asset }
    if path == "/" { return Pages.overview }
    // This path is checked as `/metrics` is, whose client sends the token as a bearer token.
    if path == "/api/stream" { return stream(of: nil, until: end) }
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    if parts.count == 2, parts.first == "workers", Self.name(parts.last) != nil {
      return Pages.worker
    }
    if parts.count == 4, parts.starts(with: ["api", "workers"]),
      let worker = Self.name(parts.dropFirst(2).first)
    {
      switch parts.last {
      case "stream": return stream(of: worker, until: end)
      case "snapshot": return await snapshot(of: worker)
      default: break
      }
    }
    return Self.text(404, "There is no such page.")
  }

  private static func name(_ component: Substring?) -> String? {
    component.flatMap { $0.isEmpty ? nil : pathUnescaped($0) }
  }

  /// Sends events until the page is closed. The page counts as open from the first event on, not
  /// before: a request that is abandoned has no events.
  private func stream(of worker: String?, until end: ContinuousClock.Instant?) -> Response {
    Response(
      status: .ok, headers: [.contentType: "text/event-stream"],
      body: ResponseBody { [hub, files] writer in
        guard let (id, events) = hub.join(worker: worker) else {
          let full = MissingPage(problem: "\(Hub.maxViewers) pages are open; close some.")
          try await writer.write(ServerEvent("missing", full).buffer)
          return try await writer.finish(nil)
        }
        let log = worker.map { LogFollower(worker: $0, viewer: id, hub: hub, files: files) }
        let following = log.map { log in Task { await log.run() } }
        defer {
          following?.cancel()
          hub.leave(id)
        }
        try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
        // A closed page ends this loop with the next event, at most a second later.
        for await event in events {
          if let end, ContinuousClock.now > end { break }
          try await writer.write(event.buffer)
        }
        try await writer.finish(nil)
      })
  }

  private func snapshot(of worker: String) async -> Response {
    do {
      guard let snapshot = try await actions.snapshot(of: worker), let data = snapshot.data,
        ShownSnapshot.images.contains(snapshot.mime), let bytes = Base64.decode(data)
      else { return Self.text(404, "This worker has no picture.") }
      return Response(
        status: .ok, headers: [.contentType: snapshot.mime],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    } catch { return Self.text(503, "\(error)") }
  }

  // MARK: acting

  /// Answers `POST /api/workers/NAME/VERB`.
  private func act(_ path: String) async -> Response {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    guard parts.count == 4, parts.starts(with: ["api", "workers"]), let verbName = parts.last,
      let verb = ActionRunner.verbs[String(verbName)],
      let worker = Self.name(parts.dropFirst(2).first)
    else { return Self.text(404, "There is no such request.") }
    let outcome = await actions.perform(verb, worker: worker)
    hub.wakeup.signal()
    // A sentence and a truth value always have a JSON form.
    let bytes = (try? WireCodec.json(for: outcome)) ?? []
    return Response(
      status: .init(code: outcome.status), headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  // MARK: answers

  private static func text(_ status: Int, _ text: String) -> Response {
    Response(
      status: .init(code: status), headers: [.contentType: "text/plain; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
  }

  private static func secured(_ response: Response) -> Response {
    var response = response
    response.headers[.contentSecurityPolicy] = Pages.policy
    response.headers[.xContentTypeOptions] = "nosniff"
    response.headers[.referrerPolicy] = "no-referrer"
    response.headers[.frameOptions] = "DENY"
    response.headers[.openerPolicy] = "same-origin"
    response.headers[.crossOriginResourcePolicy] = "same-origin"
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

extension HTTPField.Name {
  // Words without blanks are always valid names.
  static let dormouseToken = HTTPField.Name("X-Dormouse-Token") ?? .authorization
  static let fetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .origin
  static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .cacheControl
  static let frameOptions = HTTPField.Name("X-Frame-Options") ?? .cacheControl
  static let openerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .cacheControl
}
