/// An answer. It has its length, so that a connection can be used again.
struct HTTPResponse: Hashable {
  var status: Int
  var type = "text/plain; charset=utf-8"
  var body: [UInt8]
  var more = ""

  init(_ status: Int, _ text: String) {
    self.status = status
    body = Array((text + "\n").utf8)
  }

  init(_ reply: Reply) {
    switch reply {
    case .done(let text): self.init(200, text)
    case .refused(let text): self.init(409, text)
    case .missing(let text): self.init(404, text)
    case .failed(let text): self.init(500, text)
    }
  }

  init(type: String, body: [UInt8]) {
    status = 200
    self.type = type
    self.body = body
  }

  private static let reasons = [
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict",
    413: "Content Too Large", 500: "Internal Server Error", 501: "Not Implemented",
  ]

  func bytes(keepsOpen: Bool) -> [UInt8] {
    let head = """
      HTTP/1.1 \(status) \(Self.reasons[status] ?? "")\r
      Content-Type: \(type)\r
      Content-Length: \(body.count)\r
      Connection: \(keepsOpen ? "keep-alive" : "close")\r
      \(more)\r

      """
    return Array(head.utf8) + body
  }
}
