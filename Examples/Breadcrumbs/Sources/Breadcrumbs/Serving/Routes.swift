/// Answers requests. `/show/3` is the command `show 3`; a body is the remainder of the command, as
/// in `POST /edit/3`.
struct Routes: Sendable {
  let app: App
  let album: Album

  /// - Returns: the answer, and whether it is the last one.
  func answer(_ request: HTTPRequest) async -> (HTTPResponse, isLast: Bool) {
    guard request.method == "GET" || request.method == "POST" else {
      return (notAllowed("GET, POST"), false)
    }
    if request.method == "GET" {
      if request.path.isEmpty { return (await page(), false) }
      if let number = photoNumber(request.path) { return (photo(number), false) }
    }
    let tokens = request.path + (request.body.isEmpty ? [] : [request.body])
    let command: Command
    do {
      command = try Command(line: tokens.joined(separator: " "))
    } catch .unknown(let name) {
      return (HTTPResponse(404, "\(CommandError.unknown(name))"), false)
    } catch {
      return (HTTPResponse(400, "\(error)"), false)
    }
    if command.isChange, request.method != "POST" { return (notAllowed("POST"), false) }
    return (HTTPResponse(await app.perform(command)), command == .quit)
  }

  private func notAllowed(_ methods: String) -> HTTPResponse {
    var response = HTTPResponse(405, "\(methods), please")
    response.more = "Allow: \(methods)\r\n"
    return response
  }

  /// Returns the number of a path such as `/photos/3.jpg`.
  private func photoNumber(_ path: [String]) -> Int? {
    guard path.count == 2, path[0] == "photos", path[1].hasSuffix(".jpg") else { return nil }
    return Int(path[1].dropLast(4)).flatMap { (1...album.count).contains($0) ? $0 : nil }
  }

  private func photo(_ number: Int) -> HTTPResponse {
    do {
      return HTTPResponse(type: "image/jpeg", body: try album.jpeg(number))
    } catch {
      return HTTPResponse(500, "\(error)")
    }
  }

  /// The journal on one page, for a browser.
  private func page() async -> HTTPResponse {
    guard case .done(let entries) = await app.perform(.entries) else {
      return HTTPResponse(500, "no entries")
    }
    let figures = entries.split(separator: "\n").enumerated().map { index, line in
      "<figure><img src=/photos/\(index + 1).jpg width=400><figcaption>\(Self.escaped(line))"
    }
    let style = "body{font:16px serif;columns:420px;background:#fdfaf3}figure{break-inside:avoid}"
    let html =
      "<!doctype html><meta charset=utf-8><title>Breadcrumbs</title><style>\(style)</style>"
    return HTTPResponse(
      type: "text/html; charset=utf-8", body: Array((html + figures.joined() + "\n").utf8))
  }

  private static func escaped(_ text: Substring) -> String {
    text.reduce(into: "") { result, character in
      switch character {
      case "<": result += "&lt;"
      case "&": result += "&amp;"
      default: result.append(character)
      }
    }
  }
}
