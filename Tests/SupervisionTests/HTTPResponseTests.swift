import Policy
import Testing

@testable import Supervision

@Suite struct HTTPResponseTests {
  @Test func `A probe whose method isn't GET says that its request has no body`() {
    for (method, saysIt) in [("GET", false), ("HEAD", true)] {
      var probe = Probe.HTTPRequest(host: "localhost", port: 80, path: "/")
      probe.method = method
      let request = String(decoding: HTTPExchange(probe).request, as: UTF8.self)
      #expect(request.contains("\r\nContent-Length: 0\r\n") == saysIt)
    }
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n"
      + "0\r\nTrailer: z\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\ncontent-length:2\r\n\r\nab",
  ])
  func `A response is complete at its last byte, in whatever pieces it comes`(text: String) throws {
    let bytes = Array(text.utf8)
    for cut in bytes.indices {
      var response = HTTPResponse()
      try response.feed(bytes[..<cut])
      #expect(!response.isComplete)
      try response.feed(bytes[cut...])
      #expect(response.isComplete && response.isSuccess && !response.closes, "\(cut)")
    }
  }

  @Test func `A response without a length ends when the server closes the connection`() throws {
    var response = HTTPResponse()
    try response.feed(Array("HTTP/1.0 200 OK\r\n\r\nanything".utf8)[...])
    #expect(!response.isComplete)
    let isWhole = response.end()
    #expect(isWhole && response.closes)
  }

  @Test func `A response that is cut short isn't complete`() throws {
    for text in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
      var response = HTTPResponse()
      try response.feed(Array(text.utf8)[...])
      let isWhole = response.end()
      #expect(!isWhole)
    }
  }

  @Test(arguments: [
    "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 abc\r\n", "HTTP/1.1 700 x\r\n", "\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
    "HTTP/1.1 204 x\r\n\r\nmore", String(repeating: "x", count: 70_000),
  ])
  func `What isn't HTTP is refused`(text: String) {
    var response = HTTPResponse()
    #expect(throws: HTTPResponse.Failure.self) { try response.feed(Array(text.utf8)[...]) }
  }

  @Test func `A response with an error status is no success`() throws {
    var response = HTTPResponse()
    try response.feed(
      Array("HTTP/1.1 503 x\r\nConnection: close\r\ncontent-length: 0\r\n\r\n".utf8)[...])
    #expect(response.isComplete && !response.isSuccess && response.closes)
  }
}
